// The words of the configuration for the state of a server.
#pragma once

#include <string_view>

#include "config/model.h"

namespace clockwise::upstream {

[[nodiscard]] constexpr std::string_view to_string(config::ServerState state) noexcept {
  switch (state) {
    case config::ServerState::draining:
      return "draining";
    case config::ServerState::down:
      return "down";
    case config::ServerState::active:
      break;
  }
  return "active";
}

}  // namespace clockwise::upstream
