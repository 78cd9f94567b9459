// The folder in which the history of ring changes outlives the process (`state_dir`).
//
// One process at a time has it: a lock file keeps a second one out. The file is replaced as a whole
// (written beside it, synced, renamed), so a crash leaves the old one or the new one. Nothing that
// happens to the folder later stops the proxy: it is logged, and tried again with the next change.
//
// Blocking, for the start and the control thread.
#pragma once

#include <cstdint>
#include <memory>
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
  // Writes the history unless it is what was written last.
  void save(const upstream::View& view);

 private:
  StateDir(const std::string& folder, int lock);

  const std::string file_;  // remaps.json in the folder
  const int lock_;
  std::uint64_t saved_id_ = 0, saved_requests_ = 0;
  bool failing_ = false;  // told once until it works again
};

// What `check` can say of the folder without making it.
[[nodiscard]] Result<void> check_state_dir(const std::string& folder);

}  // namespace clockwise::runtime
