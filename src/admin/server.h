// The admin HTTP server: the metrics page and the API, on a thread of its own, with one more for
// answers that may take long.
//
// It shares nothing with the workers but the directory, so neither a slow reader nor a reload in
// progress nor a large plan holds up a request or a scrape. Bounded in what it takes: 64
// connections, 16 KiB of head, 4 MiB of body, 5 s to send a head and 10 s for each other step,
// Aside::kMost long answers. A connection without a whole request gives way to a new one.
#pragma once

#include <memory>

#include "admin/api.h"
#include "admin/aside.h"
#include "base/result.h"
#include "config/model.h"
#include "upstream/directory.h"
#include "upstream/reload_port.h"

namespace clockwise::admin {

class AdminServer {
 public:
  // `directory` must outlive the server; `port` may answer after the server has stopped. `warn` is
  // called on the admin thread.
  AdminServer(upstream::Directory& directory, upstream::ControlPort port, Warn warn = {});
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // Binds, starts the thread and returns the address with the port that was taken. A stale unix
  // socket is replaced; its file gets mode 0600. REQUIRES: not started, or stopped since.
  Result<config::Address> start(const config::Admin& admin);
  // Closes every connection, drops the long answers that have not begun, and joins the threads.
  // Idempotent.
  void stop();

 private:
  class Session;
  class Core;

  std::unique_ptr<Aside> aside_;
  Api api_;
  // Shared with reloads under way, which may end after stop().
  std::shared_ptr<Core> core_;
};

}  // namespace clockwise::admin
