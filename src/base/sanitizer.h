// Whether this is a build with the address sanitizer, and what that one cannot know by itself:
// which parts of a memory that is lent in pieces may be used.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define CLOCKWISE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define CLOCKWISE_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define CLOCKWISE_ADDRESS_SANITIZER 0
#endif

#if CLOCKWISE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace clockwise {

// From now on every use of it is reported; nothing in other builds.
inline void poison([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) noexcept {
#if CLOCKWISE_ADDRESS_SANITIZER
  __asan_poison_memory_region(memory, size);
#endif
}

inline void unpoison([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) noexcept {
#if CLOCKWISE_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(memory, size);
#endif
}

}  // namespace clockwise
