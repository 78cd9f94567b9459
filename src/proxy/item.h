// An item of memcached as a resource of HTTP: its key, what it is answered with, what a PUT makes
// of it. Pure; docs/memcached.md has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "http/head.h"

namespace clockwise::proxy {

// A value as HTTP gives it.
struct ItemAnswer {
  std::uint16_t status = 200;
  std::string lines;      // field lines of the content, each with its CRLF
  std::string_view body;  // in the value, or in what it was unpacked to
};

// The key on the wire of what the pool's template gives: escaped, and digested where it is long.
struct ItemKey {
  bool digested = false;
  bool refused = false;  // it is long, and memcached.long_key says reject
};
[[nodiscard]] ItemKey item_key(std::string_view rendered, const config::Memcached& settings,
                               std::string& key);

// The Content-Type by the extension of the path in `uri`.
[[nodiscard]] std::string_view content_type(std::string_view uri,
                                            const config::Memcached& settings) noexcept;

// `"17"` for an item whose unique is 17.
[[nodiscard]] std::string etag_of(std::uint64_t unique);
// The uniques that an If-Match names; tags that no item can have are left out. Nothing: it is *.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> uniques_of(
    std::span<const std::string_view> if_match);

// Does the client take gzip as it is (RFC 9110 12.5.3)? Without a word about it: no.
[[nodiscard]] bool accepts_gzip(std::string_view octets, std::span<const http::FieldLine> fields);

// Of gzip; false where it is damaged, or more than `most` octets come out.
[[nodiscard]] bool unpack(std::string_view packed, std::size_t most, std::string& out);

// `layout: http`: a value that begins with the head of an answer. Nothing: it does not.
[[nodiscard]] std::optional<ItemAnswer> read_stored_answer(std::string_view value);
// The head of such a value, for content that came with these fields.
[[nodiscard]] std::string stored_answer_head(std::string_view octets,
                                             std::span<const http::FieldLine> fields);

// The lifetime of what a PUT stores, in seconds; 0: none.
[[nodiscard]] std::int64_t put_lifetime(std::string_view octets,
                                        std::span<const http::FieldLine> fields,
                                        const config::Memcached& settings);

// The flags of what a PUT stores, or nothing: the pool cannot keep that Content-Encoding.
[[nodiscard]] std::optional<std::uint32_t> put_flags(std::string_view octets,
                                                     std::span<const http::FieldLine> fields,
                                                     const config::Memcached& settings);

}  // namespace clockwise::proxy
