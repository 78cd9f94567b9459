// Address blocks, for `forwarded.trust`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config/model.h"

namespace clockwise::proxy {

class Networks {
 public:
  Networks() = default;
  // The texts are validated by the configuration; one that does not parse matches nothing.
  explicit Networks(const std::vector<config::Network>& blocks);

  // `ip` as text, v4 or v6; a v4-mapped v6 address counts as v4. Empty (unix socket): never.
  [[nodiscard]] bool contains(std::string_view ip) const;

 private:
  struct Block {
    std::array<std::uint8_t, 16> address;  // v4 as v4-mapped v6
    unsigned bits;
  };
  std::vector<Block> blocks_;
};

}  // namespace clockwise::proxy
