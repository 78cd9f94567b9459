// The body of a call that changes something: one JSON value, each name of an object once.
//
// Pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::admin {

// The error names the place; `shape` says what is wanted, where the body is no JSON at all. A name
// counts as it reads once decoded: "st\u0061te" is "state".
[[nodiscard]] Result<boost::json::value> parse_body(std::string_view body, std::string_view shape);

// What was found, for a message: never longer than a line.
[[nodiscard]] std::string shown(const boost::json::value& value);

}  // namespace clockwise::admin
