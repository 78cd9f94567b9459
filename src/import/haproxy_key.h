// What HAProxy hashes (`balance …`), in the words of a key template here.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace clockwise::importer {

struct HaproxyKey {
  bool placed = false;  // false: the algorithm looks at no key
  std::string key = "{uri}";
  std::string moves = {};  // why the key is not the same; empty: it is
  std::string note = {};   // what differs in a corner
  bool cut_query = false;  // HAProxy itself cuts the query of the URI it is given
};

// `words` are those of the line, `balance` first.
[[nodiscard]] HaproxyKey haproxy_key(std::span<const std::string_view> words);

}  // namespace clockwise::importer
