// Tells a service manager what the process is doing (sd_notify, without its library).
//
// Does nothing unless NOTIFY_SOCKET is set. Never blocks and never fails: a manager that does not
// listen is no reason to stop.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace clockwise::runtime {

// `state`: lines such as "READY=1\nSTATUS=…".
void notify_manager(std::string_view state);

// How long the manager waits for a WATCHDOG=1 before it takes the process for dead; nothing: it
// does not watch.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_patience();

// RELOADING=1 needs the moment it began, READY=1 has to follow.
void notify_reloading();

}  // namespace clockwise::runtime
