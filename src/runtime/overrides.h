// What was changed at run time over the files: for each pool the ring and the servers that run
// instead of those that are written.
//
// An override answers what was written when it was made. It stays while the files say the same of
// the pool's ring and servers; once they say something else, or the pool is gone, the files win.
// It lives as long as the process. A value, one thread; pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/model.h"
#include "upstream/placed.h"

namespace clockwise::runtime {

class Overrides {
 public:
  // From now on `pool` runs with `instead` of what is written; when that is the same, with what is
  // written. REQUIRES: `pool` is as written.
  void set(const config::Pool& pool, upstream::Placed instead);

  // Puts the overrides over what is written. Those that no longer hold are forgotten; returns their
  // pools.
  std::vector<std::string> apply(config::Config& written);

  [[nodiscard]] bool empty() const noexcept { return pools_.empty(); }

 private:
  struct Override {
    config::Pool written;
    upstream::Placed instead;
  };
  std::map<std::string, Override> pools_;
};

}  // namespace clockwise::runtime
