// Where a key of a pool is: what `lookup` on the command line and in the admin API answer.
//
// Pure; health plays no part. Here the answer is the ring's alone.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "ring/ring.h"

namespace clockwise::upstream {

// `limit` distinct servers, or as many as the ring has, each with the point through which it is
// reached: the owners (upstream/owners.h), then the others in the order of the walk.
[[nodiscard]] std::vector<ring::Point> walk(const config::Pool& pool, const ring::Ring& ring,
                                            ring::Position position, std::size_t limit);

struct KeyPlace {
  ring::Position hash = 0;
  std::vector<ring::ServerIndex> owners;  // distinct, the home first; empty: the ring is
};

// The first `replicas` of them.
[[nodiscard]] KeyPlace locate(const config::Pool& pool, const ring::Ring& ring,
                              ring::Position position, std::uint32_t replicas = 1);

// {"key", "hash": "decimal", "server", "address", "replicas": [names], "previous"}. `replicas` are
// all owners, the home first. The key stays byte for byte: write the object with upstream::to_text,
// which takes care of octets that are not UTF-8. `previous`: the owner before a change that is
// still handed off, if that is known.
[[nodiscard]] boost::json::object to_json(const config::Pool& pool, std::string_view key,
                                          const KeyPlace& place,
                                          const std::optional<std::string>& previous = {});

}  // namespace clockwise::upstream
