// The folder in which the history of ring changes outlives the process (`state_dir`).
//
// One process at a time has it: a lock file keeps a second one out. The file is replaced as a whole
// (written beside it, synced, renamed), so a crash leaves the old one or the new one. Nothing that
// happens to the folder later stops the proxy: it is logged, and tried again with the next save. A
// folder that went away, or was emptied, is made and locked again.
//
// Blocking, for the start and the control thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "upstream/directory.h"

namespace clockwise::runtime {

class StateDir {
 public:
  // Makes the folder where it is missing, for its owner alone, and takes its lock. Null when
  // another process has it, which is logged: then there is nothing to load or save. The error says
  // why the folder cannot be used.
  static Result<std::unique_ptr<StateDir>> open(const std::string& folder);
  ~StateDir();
  StateDir(const StateDir&) = delete;
  StateDir& operator=(const StateDir&) = delete;

  // What an earlier process left; nothing at the first start. A damaged file is put aside as
  // remaps.json.bad, which is logged.
  upstream::SavedHistory load();
  // Writes the history unless it is what was written last and the folder is still there.
  void save(const upstream::View& view);

 private:
  StateDir(std::string folder, int lock);
  [[nodiscard]] bool holds_folder() const;
  std::optional<std::string> take_again();

  const std::string folder_;
  const std::string file_;  // remaps.json in it
  int lock_;
  std::uint64_t saved_id_ = 0, saved_requests_ = 0;
  bool failing_ = false;  // told once until it works again
};

// What `check` can say of the folder without making it.
[[nodiscard]] Result<void> check_state_dir(const std::string& folder);

}  // namespace clockwise::runtime
