// A vector for what may be tens of megabytes: asks the system for large pages.
//
// Memory that is touched for the first time costs a fault for each page, which for pages of 4 KiB
// can take longer than the work on it. From 4 MiB on the memory is aligned to large pages and the
// kernel is told that it may use them; where it does not, nothing is lost.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace clockwise {

template <class T>
class LargePages {
 public:
  using value_type = T;

  LargePages() noexcept = default;
  template <class U>
  LargePages(const LargePages<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < kLarge) return static_cast<T*>(::operator new(size));
    void* const memory = ::operator new(size, kPage);
    ::madvise(memory, size, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    const std::size_t size = count * sizeof(T);
    if (size < kLarge)
      ::operator delete(memory, size);
    else
      ::operator delete(memory, size, kPage);
  }

  friend bool operator==(const LargePages&, const LargePages&) noexcept { return true; }

 private:
  static constexpr std::size_t kLarge = std::size_t{4} << 20;
  static constexpr std::align_val_t kPage{std::size_t{2} << 20};
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace clockwise
