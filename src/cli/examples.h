// The shipped example configuration, embedded so that the binary works wherever it stands.
#pragma once

#include <string_view>

namespace clockwise::cli {

std::string_view example_configuration() noexcept;  // config/clockwise.yaml
std::string_view example_upstreams() noexcept;      // config/upstreams.yaml

}  // namespace clockwise::cli
