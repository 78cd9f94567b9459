// The key of an item on the wire, made from any text; and times as servers take them. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace clockwise::memcached {

// 1 to 250 octets, none of them a blank or a control character below it.
[[nodiscard]] bool is_key(std::string_view key) noexcept;

// Appends `text`, each octet up to 0x20 and each % as %XX in upper case: what nginx makes of the
// variables in memcached_key, so that no octet can end the key or the line.
void append_escaped(std::string_view text, std::string& key);

// A key of more than 250 octets becomes its first 217, a ~, and 32 hexadecimal digits: the first
// half of its SHA-256. False: it was short enough.
bool digest_if_long(std::string& key);

// The key of the lock that says who fetches the item of `key`: no longer than a key may be, and in
// the same namespace (of up to 200 octets) where `key` is.
[[nodiscard]] std::string lock_key(std::string_view key, std::string_view key_namespace);

// What is sent as exptime so that an item lives for `seconds`: above 30 days a server takes it as
// a time of day, which it then has to be. 0: for ever. REQUIRES: seconds >= 0.
[[nodiscard]] std::int64_t exptime_of(std::int64_t seconds, std::int64_t unix_now) noexcept;
// What is stored on a server that stands in for another lives no longer than `life`, a time of 0
// and one of the day too.
[[nodiscard]] std::int64_t exptime_of_stand_in(std::int64_t exptime,
                                               std::chrono::milliseconds life) noexcept;

}  // namespace clockwise::memcached
