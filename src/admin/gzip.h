// Compressed answers.
#pragma once

#include <string>
#include <string_view>

namespace clockwise::admin {

// Whether an Accept-Encoding field allows gzip.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);
// The gzip form of `text`; empty when zlib has no memory.
[[nodiscard]] std::string gzipped(std::string_view text);

}  // namespace clockwise::admin
