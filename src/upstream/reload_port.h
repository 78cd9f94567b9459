// How the admin API asks for what changes the running proxy without knowing who performs it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "upstream/directory.h"

namespace clockwise::upstream {

// Runs on the control thread; `done` is called there exactly once, after workers took over the new
// routing (or nothing changed). Thread-safe to call.
using ReloadRequest = std::function<void(Trigger trigger, bool force,
                                         std::function<void(const ReloadOutcome&)> done)>;

// Why there is no way back to the ring before a change; nothing was tried.
struct NoWayBack {
  enum class Why {
    unknown_change,  // no such entry in the history
    not_kept,        // the history no longer knows the servers before it
    pool_gone,
    from_file,  // the pool's list comes from a file, which would say something else
  };
  Why why;
  std::string message;
};

using RollbackResult = std::variant<ReloadOutcome, NoWayBack>;

// Back to the ring before the change `id`; threads as above.
using RollbackRequest = std::function<void(std::uint64_t id, bool force,
                                           std::function<void(const RollbackResult&)> done)>;

// What of a server is to be another from now on; the rest stays.
struct ServerChange {
  std::string pool, server;
  std::optional<config::ServerState> state;
  std::optional<double> weight;
};

// There is nothing of that name; nothing was tried.
struct NoSuchServer {
  std::string message;
};

using ServerChangeResult = std::variant<ReloadOutcome, NoSuchServer>;

// Changes one server of the running pool; threads as above.
using ServerChangeRequest = std::function<void(
    const ServerChange& change, bool force, std::function<void(const ServerChangeResult&)> done)>;

struct ControlPort {
  ReloadRequest reload = {};
  RollbackRequest rollback = {};
  ServerChangeRequest change_server = {};
};

}  // namespace clockwise::upstream
