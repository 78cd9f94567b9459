// The thread of health: what happens to servers by the clock rather than by a request.
//
// It checks them, ends ejections, judges the shares of successes, and logs what changed. Start and
// reload block the control thread; this one goes on meanwhile.
#pragma once

#include <memory>

#include "upstream/routing.h"

namespace clockwise::runtime {

class Checker {
 public:
  Checker();
  ~Checker();  // ends the thread
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // The snapshot that is served from now on. Its rules count when this returns; any thread, one at
  // a time.
  void adopt(std::shared_ptr<const upstream::Routing> routing);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clockwise::runtime
