// Did a server answer from its cache? Read from what it says itself.
//
// In this order, the first that tells: Cache-Status (RFC 9211), X-Cache-Status and X-Cache (nginx,
// Varnish, Squid, CDNs), Age. A list grows towards the client, so its last member is the server
// that answered us. An answer that took a look at the origin, a revalidation included, is a miss:
// it cost the origin a request. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "http/head.h"

namespace clockwise::http {

enum class CacheAnswer : std::uint8_t { unknown, hit, miss };

// `head`: the octets that `fields` count from. One pass over the lines, no allocation.
[[nodiscard]] CacheAnswer cache_answer(std::string_view head,
                                       std::span<const FieldLine> fields) noexcept;

}  // namespace clockwise::http
