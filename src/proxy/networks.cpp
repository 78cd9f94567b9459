#include "proxy/networks.h"

#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <optional>
#include <string>

namespace clockwise::proxy {
namespace {

namespace ip = boost::asio::ip;

std::optional<std::array<std::uint8_t, 16>> parse(std::string_view text, bool& is_v4) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  is_v4 = address.is_v4() || address.to_v6().is_v4_mapped();
  return address.is_v4() ? ip::make_address_v6(ip::v4_mapped, address.to_v4()).to_bytes()
                         : address.to_v6().to_bytes();
}

bool same_prefix(const std::array<std::uint8_t, 16>& a, const std::array<std::uint8_t, 16>& b,
                 unsigned bits) {
  for (unsigned i = 0; i < 16 && bits > 0; ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    if (((a[i] ^ b[i]) >> (8 - here)) != 0) return false;
    bits -= here;
  }
  return true;
}

}  // namespace

Networks::Networks(const std::vector<config::Network>& blocks) {
  for (const auto& block : blocks) {
    const std::string_view text = block.text;
    const auto slash = text.find('/');
    bool is_v4 = false;
    const auto address = parse(text.substr(0, slash), is_v4);
    if (!address) continue;
    unsigned bits = is_v4 ? 32 : 128;
    if (slash != std::string_view::npos) {
      std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
    }
    blocks_.push_back({*address, is_v4 ? bits + 96 : bits});
  }
}

bool Networks::contains(std::string_view ip) const {
  if (blocks_.empty() || ip.empty()) return false;
  bool is_v4 = false;
  const auto address = parse(ip, is_v4);
  if (!address) return false;
  for (const Block& block : blocks_) {
    if (same_prefix(block.address, *address, block.bits)) return true;
  }
  return false;
}

}  // namespace clockwise::proxy
