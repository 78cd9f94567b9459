// How a fuzzer cuts its input: the first octet seeds the cuts, the rest is the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace clockwise::fuzz {

// Ends the program, so that the fuzzer keeps the input.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// A stream of piece sizes, 1 to 16, mostly small.
class Cuts {
 public:
  explicit Cuts(std::uint8_t seed) noexcept : state_(seed * 2654435761U + 1) {}

  std::size_t next() noexcept {
    state_ = state_ * 1664525U + 1013904223U;
    return 1 + (state_ >> 28 & (state_ >> 20));
  }

 private:
  std::uint32_t state_;
};

inline std::string_view text_of(const std::uint8_t* octets, std::size_t size) {
  return {reinterpret_cast<const char*>(octets), size};
}

}  // namespace clockwise::fuzz
