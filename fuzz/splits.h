// How a fuzzer cuts its input: the first octet seeds the cuts, the rest is the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <source_location>
#include <string_view>

namespace clockwise::fuzz {

// Says what does not hold and ends the program, so that the fuzzer keeps the input.
inline void require(bool holds, std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u does not hold\n", where.file_name(), where.line());
  __builtin_trap();
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
