#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "upstream/plan.h"

namespace clockwise::upstream {
namespace {

// The length stands before the text, so that no two lists read the same.
std::string field(std::string_view text) { return fmt::format("{}:{} ", text.size(), text); }

std::string server_line(const config::Server& server) {
  // {} prints the shortest text that gives the same double again.
  return fmt::format("server {}{}{} {}\n", field(server.name), field(server.ring_label()),
                     server.weight, server.on_ring() ? "on" : "off");
}

std::string canonical_text(const config::Pool& pool) {
  std::vector<std::string> lines;
  lines.reserve(pool.servers.size());
  for (const config::Server& server : pool.servers) lines.push_back(server_line(server));
  std::sort(lines.begin(), lines.end());
  std::string text = fmt::format("ring {}{} {}\n", field(pool.ring.scheme), pool.ring.points,
                                 field(pool.ring.key));
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

std::string ring_digest(const config::Pool& pool) {
  const std::string text = canonical_text(pool);
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available in OpenSSL");
  std::string digest;
  for (std::size_t i = 0; i < 8; ++i) digest += fmt::format("{:02x}", hash[i]);
  return digest;
}

}  // namespace clockwise::upstream
