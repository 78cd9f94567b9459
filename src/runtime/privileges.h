// The user that the process becomes once its ports are taken (`user`), and how files of that user
// come to be while it is still root.
//
// For the start, before any thread of ours serves; the C library changes all threads at once.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "config/model.h"

namespace clockwise::runtime {

struct Identity {
  std::string user;
  uid_t uid;
  gid_t gid;
};

// Who `user` or `user:group` is; nothing where the process is to stay who it is, or is that user
// already. The error names what the system does not know, or that only root can become someone.
[[nodiscard]] Result<std::optional<Identity>> identity_of(const std::string& user);

// Files that `config` wants written and that are not there yet, made for that user where only root
// may make them.
[[nodiscard]] Result<void> make_files_for(const Identity& who, const config::Config& config);

// Acts as that user until it goes out of scope: what may not be opened so cannot be opened later
// either.
class ActingAs {
 public:
  explicit ActingAs(const std::optional<Identity>& who);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  const bool acting_;
};

// No program that this process starts can gain a privilege, by set-uid or otherwise. Holds for the
// calling thread and those it starts: REQUIRES: called before the first.
void forgo_new_privileges();

// Becomes that user with its groups, and makes sure that there is no way back.
[[nodiscard]] Result<void> become(const Identity& who);

}  // namespace clockwise::runtime
