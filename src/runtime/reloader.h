// Start and reload: from the files to a snapshot that every worker runs with, or to the reason why
// nothing changed.
//
// All or nothing. Everything is read, validated, built and weighed beside the traffic; only then do
// the workers take over the new snapshot, each between two requests. What happened is in the
// Directory (metrics, history, status) before the call returns.
//
// Blocking, on one thread: the control thread, which is no event loop of requests.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "config/load.h"
#include "proxy/access_log.h"
#include "proxy/worker.h"
#include "runtime/assemble.h"
#include "runtime/effective.h"
#include "runtime/overrides.h"
#include "runtime/resolver.h"
#include "runtime/watcher.h"
#include "upstream/directory.h"
#include "upstream/reload_port.h"

namespace clockwise::runtime {

class Reloader {
 public:
  // The world around it, so that tests bring their own.
  struct World {
    config::FileReader read;
    config::Environment environment;
    // What the command line says over the file.
    std::function<void(config::Config&)> override_config;
    std::function<HostAddresses(const std::set<std::string>&, std::chrono::milliseconds)> lookup;
    // Takes the address of a listener and says how many connections `auto` is.
    std::function<Result<proxy::ListenerSpec>(const config::Config&, const config::Listener&)>
        listen;
    // Gives back the addresses that none of these listeners has.
    std::function<void(const std::vector<config::Listener>&)> keep_only;
    // The access log that `config` asks for; null: off.
    std::function<Result<std::shared_ptr<proxy::AccessLog>>(const config::Config&)> open_log;
    // Hands the snapshot to so many workers and waits until all of them run with it.
    std::function<Result<void>(const proxy::WorkerState&, std::size_t workers)> adopt;
  };

  Reloader(std::string file, upstream::Directory& directory, World world);

  // The first configuration, which the caller has read, since the Directory is sized by it. When
  // the result is not `applied`, nothing runs.
  upstream::ReloadOutcome start(config::Loaded loaded, FileMarks marks);
  // The watcher's word of the very content that another trigger has just seen turned down is no try
  // of its own: nothing happens, and the answer is the one that was given.
  upstream::ReloadOutcome reload(upstream::Trigger trigger, bool force);
  // Back to the ring of a pool before the change `id` of the history: judged, applied and recorded
  // as a reload is, but no file says it. Servers that are still known stay where they are by now.
  // See runtime/overrides.h for how long it lasts.
  upstream::RollbackResult rollback(std::uint64_t id, bool force);

  // Another state or weight for one server of the running pool: judged, applied, recorded and kept
  // in the same way.
  upstream::ServerChangeResult change_server(const upstream::ServerChange& change, bool force);

  // Looks the names of servers up again and tells the workers where that changed an address.
  void refresh_names(std::chrono::milliseconds patience);
  [[nodiscard]] bool has_names() const noexcept { return !names_.empty(); }
  [[nodiscard]] bool has_unresolved() const noexcept { return unresolved_; }

  // Every file that the last attempt read or missed, and those the running configuration stands
  // for.
  [[nodiscard]] const FileMarks& marks() const noexcept { return marks_; }
  [[nodiscard]] const config::Config& config() const noexcept { return *config_; }
  [[nodiscard]] proxy::AccessLog* access_log() const noexcept { return state_.log.get(); }

 private:
  // One attempt, while it may still fail.
  struct Attempt {
    upstream::ReloadOutcome outcome;
    std::shared_ptr<const config::Config> written;  // what the files say
    std::shared_ptr<config::Config> config;         // what shall run
    Overrides overrides;
    std::string act = "reload";    // as the log calls it
    std::string cause = "reload";  // as the history does
    Changes changes;
    Places places;
    Caches caches;
    proxy::WorkerState state;
  };

  config::LoadResult read(FileMarks& marks) const;
  bool load(Attempt& now, config::LoadResult files);
  void accept(Attempt& now, config::Loaded loaded);
  void attempt(Attempt& now);
  bool weigh(Attempt& now);
  bool find_servers(Attempt& now);
  bool open_listeners(Attempt& now);
  bool open_log(Attempt& now);
  bool open_stores(Attempt& now);
  bool hand_over(Attempt& now);
  void publish(const Attempt& now);
  void tell_readers();
  void record_remaps(const Attempt& now);
  void finish(Attempt& now, std::chrono::steady_clock::time_point started);
  void account(Attempt& now, std::chrono::steady_clock::time_point started);

  upstream::ReloadOutcome go_back(std::uint64_t id, const std::string& pool, upstream::Placed there,
                                  bool force);
  Attempt begin_override(bool force);
  void swap_ring(Attempt& now);
  upstream::ReloadOutcome finish_override(Attempt& now,
                                          std::chrono::steady_clock::time_point started);

  bool fail_with(Attempt& now, std::string message);
  void count_unresolved(const Places& places);

  const std::string file_;
  upstream::Directory& directory_;
  World world_;

  // What runs, and what the files say.
  std::shared_ptr<const config::Config> config_;
  std::shared_ptr<const config::Config> written_;
  Overrides overrides_;
  proxy::WorkerState state_;
  std::string digest_;
  std::set<std::string> names_;
  bool unresolved_ = false;
  FileMarks marks_;
  bool turned_down_ = false;  // by the last attempt, of which `marks_` are
};

}  // namespace clockwise::runtime
