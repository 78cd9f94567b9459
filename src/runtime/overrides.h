// What was changed at run time over the files: of a pool the whole ring with its servers (a
// rollback), or of single servers their state and weight.
//
// An override answers what was written when it was made. That of a pool stays while the files say
// the same of the pool's ring and servers, that of a server while they say the same of that server;
// once they say something else, or it is gone, the files win. They live as long as the process. A
// value, one thread; pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/model.h"
#include "upstream/placed.h"

namespace clockwise::runtime {

class Overrides {
 public:
  // From now on `pool` runs with `instead` of what is written; when that is the same, with what is
  // written. REQUIRES: `pool` is as written.
  void set(const config::Pool& pool, upstream::Placed instead);

  // From now on the server runs with this state and weight. REQUIRES: `pool` is as written;
  // `running` is what runs of it, with the server.
  void set_server(const config::Pool& pool, const config::Pool& running,
                  const config::Server& changed);

  // Puts the overrides over what is written. Those that no longer hold are forgotten; returns what
  // they were of: "pool pages", "server a of pool pages".
  std::vector<std::string> apply(config::Config& written);

  [[nodiscard]] bool empty() const noexcept { return pools_.empty() && servers_.empty(); }

 private:
  struct OfPool {
    config::Pool written;
    upstream::Placed instead;
  };
  struct OfServer {
    config::Server written;
    config::ServerState state;
    double weight;
  };

  void apply_pools(config::Config& written, std::vector<std::string>& forgotten);
  void apply_servers(config::Config& written, std::vector<std::string>& forgotten);

  std::map<std::string, OfPool> pools_;
  std::map<std::pair<std::string, std::string>, OfServer> servers_;  // by pool and name
};

}  // namespace clockwise::runtime
