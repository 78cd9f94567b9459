// Tells a service manager what the process is doing (sd_notify, without its library).
//
// Does nothing unless NOTIFY_SOCKET is set. Never blocks and never fails: a manager that does not
// listen is no reason to stop.
#pragma once

#include <string_view>

namespace clockwise::runtime {

// `state`: lines such as "READY=1\nSTATUS=…".
void notify_manager(std::string_view state);

// RELOADING=1 needs the moment it began, READY=1 has to follow.
void notify_reloading();

}  // namespace clockwise::runtime
