// The answer of `explain` as a person reads it.
#pragma once

#include <boost/json/object.hpp>
#include <string>

namespace clockwise::cli {

// The picture of one key: what is hashed, the points around the hash, the walk, who is chosen and
// why. `key` is the key object of the admin look-up (upstream/explain.h). Ends with a newline.
[[nodiscard]] std::string explain_text(const boost::json::object& key);

}  // namespace clockwise::cli
