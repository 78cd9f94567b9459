// What the scalars of a configuration mean: text to number, duration, size, share, address.
//
// Pure and strict: no sign, no leading zero, no hexadecimal, no blank, nothing after the value. The
// error is a rule that follows the quoted value: `"heavy" is not a number from 0 to 10000`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "config/model.h"

namespace clockwise::config {

// A text that is a value: a string alone could also become an Error.
[[nodiscard]] inline Result<std::string> valid(std::string text) {
  return Result<std::string>(boost::system::in_place_value, std::move(text));
}

// `17`; both bounds included.
[[nodiscard]] Result<std::uint64_t> parse_integer(std::string_view text, std::uint64_t low,
                                                  std::uint64_t high);

// `2`, `0.5`; both bounds included.
[[nodiscard]] Result<double> parse_number(std::string_view text, double low, double high);

// `250ms`, `5s`, `1m`, `2h`, `7d`, `0s`; at most a year.
[[nodiscard]] Result<milliseconds> parse_duration(std::string_view text, milliseconds low);

// Bytes: `4096`, `64k`, `2m`, `1g`, `64KiB`, `2MiB`, `1GiB`; powers of 1024.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t low,
                                               std::uint64_t high);

// `60%` or `0.6` as 0.6; 0 to 1.
[[nodiscard]] Result<double> parse_share(std::string_view text);

enum class PortRule { listening, connecting };  // listening: port 0 takes a free one

// `host:port`, `[v6]:port` or `unix:/path`.
[[nodiscard]] Result<Address> parse_address(std::string_view text, PortRule rule);

// `10.0.0.0/8`, `::1/128`; a bare address becomes a block of one.
[[nodiscard]] Result<Network> parse_network(std::string_view text);

// [A-Za-z0-9._:-]{1,64}
[[nodiscard]] Result<std::string> parse_name(std::string_view text);

// True for text that is an address rather than a name: `10.0.0.1`, `10.0.0.1:80`, `host:80`.
[[nodiscard]] bool looks_like_address(std::string_view text);

// `64 KiB` and the like, for messages.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace clockwise::config
