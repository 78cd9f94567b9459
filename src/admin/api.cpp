#include "admin/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <memory>
#include <variant>

#include "admin/access.h"
#include "admin/collect.h"
#include "admin/describe.h"
#include "admin/gzip.h"
#include "admin/purge.h"
#include "admin/server_change.h"
#include "admin/target.h"
#include "base/suggest.h"
#include "cache/purge_log.h"
#include "cache/store.h"
#include "config/field.h"
#include "config/load.h"
#include "upstream/json.h"
#include "upstream/plan.h"
#include "upstream/traffic.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;

constexpr std::size_t kWorthCompressing = 1024;
constexpr std::uint32_t kMaxReplicas = 100;

Response json_response(const json::value& body, unsigned status = 200) {
  Response response;
  response.status = status;
  response.body = upstream::to_text(body) + "\n";
  return response;
}

Response text_response(unsigned status, std::string text) {
  Response response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

Response failure_response(const config::Failure& failure) {
  json::object body = describe_error("invalid", failure.problems[0].message,
                                     describe(failure.problems[0].position));
  body["errors"] = describe(failure.problems, "invalid");
  return json_response(body, 400);
}

Response compressed(const Request& request, Response response) {
  if (response.body.size() < kWorthCompressing) return response;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!accepts_gzip(request.accept_encoding)) return response;
  std::string smaller = gzipped(response.body);
  if (smaller.empty()) return response;
  response.body = std::move(smaller);
  response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

Response busy() {
  Response response =
      error_response(503, "busy", "too many long answers are being made; try again in a second");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

// `named`: what of the routing has such names.
template <class Named>
Response unknown_name(std::string_view what, std::string_view name, const upstream::View& view,
                      Named named) {
  std::vector<std::string_view> known;
  if (view.routing)
    for (const auto& one : (*view.routing).*named) known.push_back(one->config.name);
  return error_response(
      404, "not_found",
      fmt::format("no {} is named {}{}", what, config::quoted(name), did_you_mean(name, known)));
}

Response unknown_cache(const upstream::View& view, std::string_view name) {
  return unknown_name("cache", name, view, &upstream::Routing::caches);
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || last != end) return std::nullopt;
  return number;
}

bool forced(const Target& target) {
  const std::string force = target.first("force").value_or("0");
  return force == "1" || force == "true";
}

// "?name=a&name=b" and "?name=a,b" are the same.
std::set<std::string, std::less<>> listed(const std::vector<std::string>& values) {
  std::set<std::string, std::less<>> result;
  for (std::string_view value : values)
    while (!value.empty()) {
      const std::size_t comma = std::min(value.find(','), value.size());
      if (comma > 0) result.emplace(value.substr(0, comma));
      value.remove_prefix(std::min(comma + 1, value.size()));
    }
  return result;
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Api::Call {
  Request request;
  Target target;
  upstream::View view;
  const upstream::Pool* pool = nullptr;  // of `view`, where the path names one
};

// One call of the API. `{pool}` in the pattern stands for the name of a pool that exists, `{id}`
// for anything.
struct Api::Route {
  std::string_view method;
  std::vector<std::string_view> pattern;
  using Answer = Response (Api::*)(const Call&);
  // An answer that grows with the ring, the history or the question: made on another thread.
  using Later = Response (*)(const Call&);
  // A call that changes what goes on, and is answered after that.
  using Start = void (Api::*)(const Request&, const Target&, const Reply&);
  std::variant<Answer, Later, Start> handler;

  [[nodiscard]] bool matches(const std::vector<std::string>& path) const {
    return std::ranges::equal(pattern, path, [](std::string_view wanted, const std::string& have) {
      return wanted == "{pool}" || wanted == "{id}" || wanted == have;
    });
  }
  [[nodiscard]] bool allows(std::string_view asked) const {
    return asked == method || (asked == "HEAD" && method == "GET");
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} /{}", method, fmt::join(pattern, "/"));
  }
  [[nodiscard]] const std::string* pool_name(const std::vector<std::string>& path) const {
    const auto at = std::ranges::find(pattern, "{pool}");
    return at == pattern.end() ? nullptr : &path[static_cast<std::size_t>(at - pattern.begin())];
  }
};

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> kRoutes{
      {"GET", {"metrics"}, &Api::metrics},
      {"GET", {"healthz"}, &Api::healthz},
      {"GET", {"readyz"}, &Api::readyz},
      {"GET", {"api", "v1", "status"}, &Api::status},
      {"GET", {"api", "v1", "pools"}, &Api::pools},
      {"GET", {"api", "v1", "pools", "{pool}"}, &Api::pool},
      {"GET", {"api", "v1", "pools", "{pool}", "ring"}, &Api::ring},
      {"GET", {"api", "v1", "pools", "{pool}", "lookup"}, &Api::lookup},
      {"POST", {"api", "v1", "pools", "{pool}", "plan"}, &Api::plan},
      {"PUT", {"api", "v1", "pools", "{pool}", "servers", "{id}"}, &Api::start_server_change},
      {"GET", {"api", "v1", "remaps"}, &Api::remaps},
      {"POST", {"api", "v1", "remaps", "{id}", "rollback"}, &Api::start_rollback},
      {"POST", {"api", "v1", "reload"}, &Api::start_reload},
      {"GET", {"api", "v1", "caches"}, &Api::caches},
      {"GET", {"api", "v1", "caches", "{id}"}, &Api::cache},
      {"POST", {"api", "v1", "caches", "{id}", "purge"}, &Api::start_purge},
  };
  return kRoutes;
}

Api::Api(upstream::Directory& directory, upstream::ControlPort port, Later later, Warn warn)
    : directory_(directory),
      port_(std::move(port)),
      later_(std::move(later)),
      warn_(std::move(warn)) {}

void Api::set_admin(config::Admin admin) { admin_ = std::move(admin); }

const Api::Route* Api::find_route(std::string_view method, const std::vector<std::string>& path) {
  for (const Route& route : routes())
    if (route.matches(path) && route.allows(method)) return &route;
  return nullptr;
}

// The path exists with another method, or not at all.
Response Api::no_route(const std::vector<std::string>& path) {
  std::string allowed, calls;
  for (const Route& route : routes()) {
    calls += (calls.empty() ? "" : ", ") + route.text();
    if (route.matches(path)) allowed = route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allowed.empty()) return error_response(404, "not_found", "no such call; there are: " + calls);
  Response response = error_response(405, "method_not_allowed", "this call takes " + allowed);
  response.headers.emplace_back("Allow", allowed);
  return response;
}

void Api::handle(Request request, const Reply& reply) {
  auto target = parse_target(request.target);
  if (!target)
    return reply(
        error_response(400, "bad_request", "a \"%\" in the target lacks its two hex digits"));
  const Route* route = find_route(request.method, target->path);
  if (!route) return reply(no_route(target->path));
  if (route->method != "GET")
    if (auto refusal = refuse_other_site(request)) return reply(std::move(*refusal));
  if (const auto* start = std::get_if<Route::Start>(&route->handler)) {
    if (auto refusal = refuse_change(request, token())) return reply(std::move(*refusal));
    return (this->**start)(request, *target, reply);
  }

  Call call{std::move(request), std::move(*target), directory_.view()};
  if (const std::string* name = route->pool_name(call.target.path)) {
    call.pool = call.view.routing ? call.view.routing->pool(*name) : nullptr;
    if (!call.pool) return reply(unknown_name("pool", *name, call.view, &upstream::Routing::pools));
  }
  const auto* answer = std::get_if<Route::Answer>(&route->handler);
  if (!answer) return answer_later(*route, std::move(call), reply);
  reply(compressed(call.request, (this->**answer)(call)));
}

void Api::answer_later(const Route& route, Call call, const Reply& reply) {
  const auto work = [answer = std::get<Route::Later>(route.handler), reply,
                     call = std::make_shared<const Call>(std::move(call))] {
    try {
      reply(compressed(call->request, answer(*call)));
    } catch (const std::exception& error) {
      reply(error_response(500, "internal", error.what()));
    }
  };
  if (!later_(work)) reply(busy());
}

// A reload may bring a new token, so the published one counts.
std::string Api::token() const {
  const upstream::View view = directory_.view();
  return view.config ? view.config->admin.token : admin_.token;
}

void Api::start_reload(const Request&, const Target& target, const Reply& reply) {
  port_.reload(upstream::Trigger::api, forced(target),
               [reply](const upstream::ReloadOutcome& outcome) {
                 const ReloadAnswer answer = describe_reload(outcome);
                 reply(json_response(answer.body, answer.status));
               });
}

void Api::start_rollback(const Request&, const Target& target, const Reply& reply) {
  const std::string& text = target.path.at(3);
  const auto id = whole_number<std::uint64_t>(text);
  if (!id)
    return reply(error_response(404, "not_found",
                                fmt::format("{} is no id of a change", config::quoted(text))));
  port_.rollback(*id, forced(target), [reply](const upstream::RollbackResult& result) {
    const ReloadAnswer answer = describe_rollback(result);
    reply(json_response(answer.body, answer.status));
  });
}

void Api::start_server_change(const Request& request, const Target& target, const Reply& reply) {
  auto change = read_server_change(request.body);
  if (!change) return reply(error_response(400, "invalid", change.error().message));
  change->pool = target.path.at(3);
  change->server = target.path.at(5);
  port_.change_server(*change, forced(target), [reply](const upstream::ServerChangeResult& result) {
    const ReloadAnswer answer = describe_server_change(result);
    reply(json_response(answer.body, answer.status));
  });
}

void Api::start_purge(const Request& request, const Target& target, const Reply& reply) {
  const upstream::View view = directory_.view();
  const std::string& name = target.path.at(3);
  const upstream::Cache* cache = view.cache(name);
  if (!cache) return reply(unknown_cache(view, name));
  const auto counters =
      std::ranges::find(view.cache_totals, name, &upstream::CacheTotals::cache)->purges;
  auto read = read_purge(request.body, *cache);
  if (const auto* bad = std::get_if<BadPurge>(&read)) {
    if (bad->scope) counters->add(*bad->scope, upstream::PurgeResult::error);
    return reply(error_response(400, "invalid", bad->message));
  }

  const auto rule = std::get<cache::PurgeRule>(std::move(read));
  const auto work = [reply, rule, counters, store = cache->store, purges = cache->purges] {
    try {
      if (purges) purges->add(rule, unix_ms());
      const std::size_t purged = store->purge(rule);
      counters->add(rule.scope, upstream::PurgeResult::ok);
      reply(json_response(json::object{{"purged", purged}}));
    } catch (const std::exception& error) {
      counters->add(rule.scope, upstream::PurgeResult::error);
      reply(error_response(500, "internal", error.what()));
    }
  };
  if (later_(work)) return;
  counters->add(rule.scope, upstream::PurgeResult::error);
  reply(busy());
}

Response Api::metrics(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  tell_when_basic(call.view);
  const metrics::Filter filter{listed(call.target.all("pool")), listed(call.target.all("name"))};
  const std::size_t max_series =
      call.view.config ? call.view.config->metrics.max_series : config::Metrics{}.max_series;
  metrics::Page page(budget_, max_series, filter);
  collect(call.view, metrics::read_process_facts(), page);

  const metrics::Format format = metrics::preferred_format(call.request.accept);
  Response response;
  response.content_type = metrics::content_type(format);
  response.body = metrics::serialize(page.finish(last_render_seconds_), format);
  last_render_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return response;
}

void Api::tell_when_basic(const upstream::View& view) {
  if (told_basic_ || !warn_ || !view.config) return;
  if (backend_detail(view) == view.config->metrics.per_backend) return;
  told_basic_ = true;
  warn_(fmt::format("more than {} servers: /metrics leaves out their histograms", kFullDetail));
}

Response Api::healthz(const Call&) { return text_response(200, "ok\n"); }

Response Api::readyz(const Call& call) {
  if (call.view.ready) return text_response(200, "ready\n");
  return text_response(503, call.view.stopping ? "stopping\n" : "starting\n");
}

Response Api::status(const Call& call) {
  return json_response(describe_status(call.view, admin_.address.text, upstream::WallClock::now()));
}

Response Api::pools(const Call& call) {
  json::array pools;
  if (call.view.routing)
    for (const auto& pool : call.view.routing->pools)
      pools.push_back(describe_pool(call.view, *pool));
  return json_response(json::object{{"pools", std::move(pools)}});
}

Response Api::pool(const Call& call) { return json_response(describe_pool(call.view, *call.pool)); }

Response Api::caches(const Call& call) {
  json::array caches;
  if (call.view.routing)
    for (const auto& cache : call.view.routing->caches)
      caches.push_back(describe_cache(call.view, *cache));
  return json_response(json::object{{"caches", std::move(caches)}});
}

Response Api::cache(const Call& call) {
  const std::string& name = call.target.path.at(3);
  const upstream::Cache* found = call.view.cache(name);
  if (!found) return unknown_cache(call.view, name);
  return json_response(describe_cache(call.view, *found));
}

Response Api::ring(const Call& call) { return json_response(describe_ring(*call.pool)); }

Response Api::remaps(const Call& call) { return json_response(describe_remaps(call.view)); }

Response Api::lookup(const Call& call) {
  std::vector<upstream::Question> wanted;
  for (const auto& [name, value] : call.target.query) {
    if (name == "key") wanted.push_back({value, call.pool->ring->hash(value), true});
    if (name != "hash") continue;
    const auto last = static_cast<ring::Position>(call.pool->ring->layout().positions - 1);
    const auto hash = whole_number<ring::Position>(value);
    if (!hash || *hash > last)
      return error_response(400, "bad_request",
                            fmt::format("hash {} is not a position of this ring, 0 to {}",
                                        config::quoted(value), last));
    wanted.push_back({value, *hash, false});
  }
  if (wanted.empty())
    return error_response(400, "bad_request", "which key? Ask with ?key=K or ?hash=POSITION");

  const std::string text =
      call.target.first("replicas").value_or(std::to_string(call.pool->config.ring.replicas));
  const auto replicas = whole_number<std::uint32_t>(text);
  if (!replicas || *replicas < 1 || *replicas > kMaxReplicas)
    return error_response(
        400, "bad_request",
        fmt::format("replicas {} is not a number, 1 to {}", config::quoted(text), kMaxReplicas));
  return json_response(describe_lookup(call.view, *call.pool, wanted, *replicas));
}

Response Api::plan(const Call& call) {
  const config::Pool& before = call.pool->config;
  // Nothing is taken from this process' environment: it may hold what the asker should not see.
  const config::Environment nothing = [](std::string_view) { return std::nullopt; };
  auto servers = config::load_servers("body", call.request.body, before, nothing);
  if (const auto* failure = std::get_if<config::Failure>(&servers))
    return failure_response(*failure);

  config::Pool after = before;
  after.servers = std::get<std::vector<config::Server>>(std::move(servers));
  const auto ring = upstream::build_ring(after);
  if (!ring) return error_response(400, "invalid", ring.error().message);
  const upstream::Side old_side{&before, call.pool->ring.get()}, new_side{&after, ring->get()};
  upstream::Report report = upstream::plan(old_side, new_side);
  upstream::add_traffic(report, *call.pool->recent, old_side, new_side, upstream::steady_now());
  json::object described = upstream::to_json(report);
  described.emplace("seen_keys", nullptr);  // where it is not known
  return json_response(json::object{{"pools", json::array{std::move(described)}}});
}

}  // namespace clockwise::admin
