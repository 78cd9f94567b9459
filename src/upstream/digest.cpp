#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "upstream/plan.h"
#include "upstream/ring_settings.h"

namespace clockwise::upstream {
namespace {

// The length stands before the text, so that no two lists read the same.
std::string field(std::string_view text) { return fmt::format("{}:{} ", text.size(), text); }

std::string server_line(const config::Server& server, std::uint32_t id) {
  // {} prints the shortest text that gives the same double again.
  return fmt::format("server {}{}{} {} {}\n", field(server.name), field(server.ring_label()), id,
                     server.weight, server.on_ring() ? "on" : "off");
}

// With one owner a key, zones decide nothing. By name and not by place: their order never counts.
std::string zone_lines(const config::Pool& pool) {
  if (pool.ring.replicas < 2) return {};
  std::vector<std::string> lines;
  for (const config::Server& server : pool.servers)
    if (!server.zone.empty())
      lines.push_back(fmt::format("zone {}{}\n", field(server.name), field(server.zone)));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string canonical_text(const config::Pool& pool, bool in_order) {
  std::vector<std::uint32_t> ids(pool.servers.size(), 0);
  if (ring::facts(pool.ring.scheme.placement).takes_id)
    ids = ring::server_ids(config::members_of(pool.servers));
  std::vector<std::string> lines;
  lines.reserve(pool.servers.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    lines.push_back(server_line(pool.servers[i], ids[i]));
  if (!in_order) std::sort(lines.begin(), lines.end());
  std::string text = field(boost::json::serialize(ring_settings(pool.ring)));
  text += in_order ? "in order\n" : "\n";
  for (const std::string& line : lines) text += line;
  return text + zone_lines(pool);
}

}  // namespace

std::string ring_digest(const config::Pool& pool, bool in_order) {
  const std::string text = canonical_text(pool, in_order);
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available in OpenSSL");
  std::string digest;
  for (std::size_t i = 0; i < 8; ++i) digest += fmt::format("{:02x}", hash[i]);
  return digest;
}

}  // namespace clockwise::upstream
