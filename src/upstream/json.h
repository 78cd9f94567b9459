// JSON text as people read it: plain decimal numbers with all their digits (Boost.JSON writes 0.25
// as 2.5E-1), and text that is always valid: octets that are not UTF-8 become U+FFFD.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace clockwise::upstream {

[[nodiscard]] std::string to_text(const boost::json::value& value);

}  // namespace clockwise::upstream
