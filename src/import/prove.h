// The proof of an import: many keys, each asked of the ring that the written YAML makes and of the
// model of the source.
//
// The YAML is read back by the same loader that `serve` uses, so the proof covers what was written,
// not what was meant. Keys are what `ring.key` yields; the template itself is not part of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "config/load.h"
#include "import/pool.h"

namespace clockwise::importer {

struct Difference {
  std::string key;
  std::string source;  // the server that the source would ask, by its name here
  std::string here;
};

struct PoolProof {
  std::string pool;
  std::string why_not = {};  // why nothing could be compared; empty: it was
  bool kept = true;          // false: keys move, as a note says
  std::uint64_t keys = 0;
  std::uint64_t differences = 0;
  Difference first = {};  // when there are differences
};

using Proof = std::variant<std::vector<PoolProof>, config::Failure>;

// Key number `number` of a fixed series: paths with and without queries, names of cached items,
// tags in braces, UTF-8 raw and encoded, one octet to some hundred. The same in every run.
[[nodiscard]] std::string sample_key(std::uint64_t number);

// `progress` is told of the keys done so far, over all pools.
[[nodiscard]] Proof prove(const Import& import, std::uint64_t keys,
                          const std::function<void(std::uint64_t)>& progress);

}  // namespace clockwise::importer
