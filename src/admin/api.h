// The admin API without its sockets: a request in, a response out.
//
// What changes the running proxy is answered when it is done, everything else from a view of the
// directory: at once, or elsewhere where the answer may take long, as a purge does. Used by one
// thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/target.h"
#include "config/model.h"
#include "metrics/page.h"
#include "upstream/directory.h"
#include "upstream/reload_port.h"

namespace clockwise::admin {

struct Request {
  std::string method = "GET";
  std::string target = "/";
  std::string body;
  bool local = true;  // the peer is on this machine: loopback or a unix socket
  std::string host, origin, fetch_site, authorization, accept, accept_encoding;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Called exactly once; on the calling thread before handle() returns, but for what changes the
// running proxy, where it is called on the control thread, and for what goes through Later.
using Reply = std::function<void(Response)>;
using Warn = std::function<void(std::string_view)>;
// Has work done that may take long, on a thread that may wait for it. False: there is too much of
// it already, and it will not be done.
using Later = std::function<bool(std::function<void()>)>;

class Api {
 public:
  // `warn` gets the few things an operator should read in the log.
  Api(upstream::Directory& directory, upstream::ControlPort port, Later later, Warn warn = {});

  // Where the server listens and the token that counts until a configuration is published.
  void set_admin(config::Admin admin);

  void handle(Request request, const Reply& reply);

 private:
  struct Call;   // one request on its way to its handler
  struct Route;  // one line of the list of calls
  static const std::vector<Route>& routes();
  static const Route* find_route(std::string_view method, const std::vector<std::string>& path);
  static Response no_route(const std::vector<std::string>& path);

  [[nodiscard]] std::string token() const;
  void answer_later(const Route& route, Call call, const Reply& reply);
  void start_reload(const Request& request, const Target& target, const Reply& reply);
  void start_rollback(const Request& request, const Target& target, const Reply& reply);
  void start_server_change(const Request& request, const Target& target, const Reply& reply);
  void start_purge(const Request& request, const Target& target, const Reply& reply);

  Response metrics(const Call& call);
  Response healthz(const Call& call);
  Response readyz(const Call& call);
  Response status(const Call& call);
  Response pools(const Call& call);
  Response pool(const Call& call);
  Response caches(const Call& call);
  Response cache(const Call& call);
  // Apart from this object: another thread may be at them.
  static Response ring(const Call& call);
  static Response lookup(const Call& call);
  static Response plan(const Call& call);
  static Response remaps(const Call& call);
  void tell_when_basic(const upstream::View& view);

  upstream::Directory& directory_;
  const upstream::ControlPort port_;
  const Later later_;
  const Warn warn_;
  config::Admin admin_;
  metrics::SeriesBudget budget_;
  double last_render_seconds_ = 0;
  bool told_basic_ = false;
};

}  // namespace clockwise::admin
