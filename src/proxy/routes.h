// Which route of a listener a request takes. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "http/head.h"

namespace clockwise::proxy {

// The place of the first that matches; nothing where none does. The host is compared without port,
// case and a dot at its end, the path octet by octet as received: no route is a lock, since what
// servers take for one path may be written in many ways.
[[nodiscard]] std::optional<std::size_t> first_match(const std::vector<config::Route>& routes,
                                                     const http::RequestHead& head) noexcept;

// The same for an item of memcached.
[[nodiscard]] std::optional<std::size_t> first_match(const std::vector<config::Route>& routes,
                                                     std::string_view key) noexcept;

}  // namespace clockwise::proxy
