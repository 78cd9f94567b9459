// twemproxy: ketama and modula over any of its hashes.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "import/model.h"
#include "ring/hashes.h"

namespace clockwise::importer {
namespace {

using Hash = std::uint32_t (*)(std::string_view) noexcept;
using Points = std::vector<ModelPoint<std::uint32_t>>;

Hash hash_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Hash>, 12> kHashes{
      {{"fnv1a_64", ring::fnv1a_64_low},
       {"fnv1_64", ring::fnv1_64_low},
       {"fnv1a_32", ring::fnv1a_32},
       {"fnv1_32", ring::fnv1_32},
       {"md5", ring::ketama_md5},
       {"crc16", ring::crc16_uncut},
       {"crc32", ring::crc32_high},
       {"crc32a", ring::crc32},
       {"hsieh", ring::hsieh},
       {"murmur", ring::murmur2_32},
       {"jenkins", ring::jenkins},
       {"one_at_a_time", ring::one_at_a_time}}};
  for (const auto& [known, hash] : kHashes)
    if (known == name) return hash;
  return ring::fnv1a_64_low;
}

std::string_view without_default_port(std::string_view label) {
  constexpr std::string_view kDefault = ":11211";
  if (label.ends_with(kDefault)) label.remove_suffix(kDefault.size());
  return label;
}

std::string_view tagged(std::string_view key, std::string_view tag) {
  if (tag.size() != 2) return key;
  const std::size_t open = key.find(tag[0]);
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find(tag[1], open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

// Single precision at every step, as the peer computes it.
std::uint32_t digests(double weight, double total, std::size_t servers) {
  const float share = static_cast<float>(weight) / static_cast<float>(total);
  const float points = share * 160.0F / 4 * static_cast<float>(servers);
  return static_cast<std::uint32_t>(std::floor(static_cast<float>(points + 0.0000000001)));
}

Points ketama_points(const std::vector<Server>& servers) {
  double total = 0;
  for (const Server& server : servers) total += server.weight;
  Points points;
  for (std::size_t i = 0; i < servers.size(); ++i)
    for (std::uint32_t k = 0; k < digests(servers[i].weight, total, servers.size()); ++k) {
      const ring::Md5 digest =
          ring::md5(fmt::format("{}-{}", without_default_port(servers[i].label), k));
      for (std::size_t word = 0; word < 4; ++word)
        points.push_back({ring::ketama_word(digest, word), i});
    }
  return points;
}

// A list that has each server as often as its weight says, without writing it down.
std::size_t modula_owner(const std::vector<Server>& servers, std::uint32_t hash) {
  std::uint64_t length = 0;
  for (const Server& server : servers) length += static_cast<std::uint64_t>(server.weight);
  std::uint64_t rest = hash % length;
  std::size_t owner = 0;
  for (; rest >= static_cast<std::uint64_t>(servers[owner].weight); ++owner)
    rest -= static_cast<std::uint64_t>(servers[owner].weight);
  return owner;
}

}  // namespace

Model twemproxy_model(const std::vector<Server>& servers, const ring::Scheme& scheme) {
  const Hash hash = hash_named(scheme.hash);
  const std::string tag = scheme.hash_tag;
  if (scheme.distribution == "modula")
    return [servers, hash, tag](std::string_view key) {
      return modula_owner(servers, hash(tagged(key, tag)));
    };
  return [points = ketama_points(servers), hash, tag](std::string_view key) {
    if (points.empty()) return std::size_t{0};
    return walk_from(points, hash(tagged(key, tag))).server;
  };
}

}  // namespace clockwise::importer
