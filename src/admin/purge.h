// The body of POST /api/v1/caches/C/purge: what the cache shall give no more.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cache/purge.h"
#include "upstream/routing.h"

namespace clockwise::admin {

struct BadPurge {
  std::string message;                     // the member, what was found and what is wanted
  std::optional<cache::PurgeScope> scope;  // where the body leaves no doubt
};

// {"url": "http://host/path"}, {"prefix": text}, {"host": host}, {"tag": word} or {"all": true},
// with "soft": true or false beside it. The text of the rule is that of a key of `cache` for a url,
// else as it stands in the body. Refused is also what can name nothing in this cache.
[[nodiscard]] std::variant<cache::PurgeRule, BadPurge> read_purge(std::string_view body,
                                                                  const upstream::Cache& cache);

}  // namespace clockwise::admin
