// What runs and is not what the files say: what was changed at run time.
//
// Pure.
#pragma once

#include <boost/json/array.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/model.h"
#include "upstream/directory.h"

namespace clockwise::admin {

// The servers of a pool as they are written, to compare those that run with.
class WrittenServers {
 public:
  // `view` must outlive this.
  WrittenServers(const upstream::View& view, std::string_view pool);

  // Which of weight, state, address, zone, label, id is another than the file says; "added" when
  // the file does not have the server. Empty: as written.
  [[nodiscard]] boost::json::array overridden(const config::Server& running) const;
  // The names of those that do not run.
  [[nodiscard]] std::vector<std::string_view> removed(const config::Pool& running) const;

 private:
  bool as_written_ = true;
  std::unordered_map<std::string_view, const config::Server*> servers_;
};

// [{"pool", "server", "overridden": […]}]: one entry for each server that differs, with "removed"
// for one that only the file has, and one with server null and "ring" where the ring's settings do,
// or "order" where the ring goes by the order of the list.
[[nodiscard]] boost::json::array differs_from_file(const upstream::View& view);

}  // namespace clockwise::admin
