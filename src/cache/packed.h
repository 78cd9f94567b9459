// Numbers and texts as octets one behind another, for what proxies keep for each other: numbers
// with their lowest octet first. Pure.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace clockwise::cache {

template <std::integral Number>
void pack_number(Number number, std::string& out) {
  const auto bits = static_cast<std::make_unsigned_t<Number>>(number);
  for (std::size_t i = 0; i < sizeof bits; ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(bits) >> (8 * i));
}

// Takes them off again. Once there is less than what was wanted, nothing more is good.
class Unpacker {
 public:
  explicit Unpacker(std::string_view octets) noexcept : rest_(octets) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

  template <std::integral Number>
  [[nodiscard]] Number number() noexcept {
    std::uint64_t bits = 0;
    const std::string_view octets = text(sizeof(Number));
    for (std::size_t i = 0; i < octets.size(); ++i)
      bits |= std::uint64_t{static_cast<unsigned char>(octets[i])} << (8 * i);
    return static_cast<Number>(bits);
  }
  [[nodiscard]] std::string_view text(std::size_t size) noexcept {
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace clockwise::cache
