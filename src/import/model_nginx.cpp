// nginx: `hash KEY consistent` and `hash KEY`.
#include <fmt/format.h>

#include <algorithm>

#include "import/model.h"
#include "ring/hashes.h"

namespace clockwise::importer {
namespace {

using Points = std::vector<ModelPoint<std::uint32_t>>;

constexpr int kPointsPerWeight = 160;
constexpr int kTries = 20;  // then nginx goes round robin, and no key has a place

// HOST, a zero octet and PORT of the text of a `server` directive.
std::string host_and_port(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) return text.substr(kUnix.size()) + '\0';
  std::size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  const bool has_port = digits > 0 && digits < text.size() && text[digits - 1] == ':';
  return has_port ? text.substr(0, digits - 1) + '\0' + text.substr(digits) : text + '\0';
}

std::string little_endian(std::uint32_t value) {
  std::string octets;
  for (int shift = 0; shift < 32; shift += 8) octets += static_cast<char>(value >> shift & 0xff);
  return octets;
}

// One text is one server: its points are made once, as many as its largest weight asks for.
Points points_of(const std::vector<Server>& servers) {
  Points points;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    double weight = servers[i].weight;
    bool first = true;
    for (std::size_t j = 0; j < servers.size(); ++j) {
      if (servers[j].label != servers[i].label) continue;
      if (j < i) first = false;
      weight = std::max(weight, servers[j].weight);
    }
    if (!first) continue;
    const std::string base = host_and_port(servers[i].label);
    std::uint32_t previous = 0;
    for (int k = 0; k < kPointsPerWeight * static_cast<int>(weight); ++k) {
      previous = ring::crc32(base + little_endian(previous));
      points.push_back({previous, i});
    }
  }
  return points;
}

// The point of the same position that was made first hides the others.
void keep_first(Points& points) {
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return std::pair(a.position, a.server) < std::pair(b.position, b.server);
  });
  points.erase(std::unique(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return a.position == b.position; }),
               points.end());
}

bool is_down(const std::vector<Server>& servers, std::size_t server) {
  return std::all_of(servers.begin(), servers.end(), [&](const Server& other) {
    return other.label != servers[server].label || other.down;
  });
}

}  // namespace

Model nginx_model(const std::vector<Server>& servers) {
  Points points = points_of(servers);
  keep_first(points);
  return [servers, points](std::string_view key) {
    const ModelPoint<std::uint32_t>* point = &walk_from(points, ring::crc32(key));
    for (int tries = 0; is_down(servers, point->server) && tries < kTries; ++tries)
      point = point == &points.back() ? &points.front() : point + 1;
    return point->server;
  };
}

Model nginx_hash_model(const std::vector<Server>& servers) {
  double sum = 0;
  for (const Server& server : servers) sum += server.weight;
  const auto total = static_cast<std::uint64_t>(sum);
  return [servers, total](std::string_view key) {
    const auto part = [](std::string_view text) { return ring::crc32(text) >> 16 & 0x7fff; };
    std::uint64_t hash = 0;
    std::size_t server = 0;
    for (int tries = 0; tries <= kTries; ++tries) {
      hash += part(tries == 0 ? std::string(key) : fmt::format("{}{}", tries, key));
      std::uint64_t rest = hash % total;
      for (server = 0; rest >= static_cast<std::uint64_t>(servers[server].weight); ++server)
        rest -= static_cast<std::uint64_t>(servers[server].weight);
      if (!servers[server].down) break;
    }
    return server;
  };
}

}  // namespace clockwise::importer
