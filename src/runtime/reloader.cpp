#include "runtime/reloader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "config/field.h"
#include "runtime/log.h"
#include "runtime/preflight.h"
#include "runtime/way_back.h"

namespace clockwise::runtime {
namespace {

using namespace std::chrono_literals;
using upstream::Guard;
using upstream::NoWayBack;
using upstream::ReloadResult;
using upstream::Trigger;

constexpr auto kLookupPatience = 5s;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool taken(const upstream::ReloadOutcome& outcome) {
  return outcome.result == ReloadResult::applied || outcome.result == ReloadResult::unchanged;
}

std::string applied_message(const upstream::ReloadOutcome& outcome) {
  std::vector<std::string> parts;
  for (const upstream::Report& report : outcome.pools)
    parts.push_back(fmt::format("pool {}: {}", report.pool, upstream::summary(report)));
  if (parts.empty()) parts.emplace_back("settings changed, no key moved");
  return fmt::format("{}", fmt::join(parts, "; "));
}

void log_outcome(std::string_view act, const upstream::ReloadOutcome& outcome) {
  const std::string what =
      fmt::format("{} ({}): {}", act, to_string(outcome.trigger), to_string(outcome.result));
  switch (outcome.result) {
    case ReloadResult::applied:
      log::info("{} in {:.3f} s: {}", what, outcome.duration_seconds, outcome.message);
      break;
    case ReloadResult::unchanged:
      log::info("{}", what);
      break;
    default:
      log::error("{}, the running configuration stays: {}", what, outcome.message);
      for (const config::Problem& problem : outcome.errors) log::error("{}", problem.headline());
  }
  for (const std::string& note : outcome.notes)
    if (taken(outcome)) log::info("{}", note);
  for (const upstream::NotApplied& left : outcome.not_applied)
    log::warn("not applied: {}: {}", left.path, left.reason);
}

// `file` has the list of the pool, which is `written` so.
std::string by_hand(const std::string& file, const config::Pool& written,
                    const config::Pool& running, const upstream::Placed& there) {
  const std::string what = edits(written, there);
  std::string message = fmt::format(
      "pool {} has its servers from \"{}\", and that file would undo a rollback: {}", written.name,
      file, what.empty() ? "it says the same already" : "edit it: " + what);
  if (written.servers != running.servers)
    message += "; what a PUT set at run time stays until a PUT sets it back";
  return message;
}

}  // namespace

Reloader::Reloader(std::string file, upstream::Directory& directory, World world)
    : file_(std::move(file)), directory_(directory), world_(std::move(world)) {}

upstream::ReloadOutcome Reloader::start(config::Loaded loaded, FileMarks marks) {
  const auto started = std::chrono::steady_clock::now();
  Attempt now;
  now.outcome.trigger = Trigger::start;
  marks_ = std::move(marks);
  accept(now, std::move(loaded));
  attempt(now);
  finish(now, started);
  return std::move(now.outcome);
}

upstream::ReloadOutcome Reloader::reload(Trigger trigger, bool force) {
  const auto started = std::chrono::steady_clock::now();
  FileMarks marks;
  config::LoadResult files = read(marks);
  const bool noticed = trigger == Trigger::watch || trigger == Trigger::poll;
  if (noticed && turned_down_ && marks == marks_)
    return directory_.view().last_reload.value_or(upstream::ReloadOutcome{});
  marks_ = std::move(marks);

  Attempt now;
  now.outcome.trigger = trigger;
  now.outcome.forced = force;
  if (load(now, std::move(files))) attempt(now);
  finish(now, started);
  return std::move(now.outcome);
}

void Reloader::attempt(Attempt& now) {
  if (config_ && same_meaning(*config_, *now.config)) {
    now.outcome.result = ReloadResult::unchanged;
    // The text may differ (comments, order): the status names the file that is there now.
    digest_ = now.outcome.config_digest;
    written_ = now.written;
    overrides_ = now.overrides;
    tell_readers();
    return;
  }
  if (!weigh(now) || !find_servers(now)) return;
  if (open_listeners(now) && open_log(now) && open_stores(now) && hand_over(now)) {
    publish(now);
    now.outcome.result = ReloadResult::applied;
  }
  if (config_) world_.keep_only(config_->listeners);
}

config::LoadResult Reloader::read(FileMarks& marks) const {
  const config::FileReader reader = marking(world_.read, marks);
  config::LoadResult files = config::load(file_, reader, world_.environment);
  if (std::holds_alternative<config::Loaded>(files)) return files;
  // The files of the running configuration stay watched beside those that were missed.
  for (const auto& [path, mark] : marks_)
    if (!marks.contains(path)) (void)reader(path);
  return files;
}

bool Reloader::load(Attempt& now, config::LoadResult files) {
  if (auto* failure = std::get_if<config::Failure>(&files)) {
    now.outcome.result = failure->code == config::FailureCode::unreadable ? ReloadResult::unreadable
                                                                          : ReloadResult::invalid;
    now.outcome.message = failure->problems.front().headline();
    now.outcome.errors = std::move(failure->problems);
    now.outcome.config_digest = digest_;
    return false;
  }
  accept(now, std::move(std::get<config::Loaded>(files)));
  return true;
}

void Reloader::accept(Attempt& now, config::Loaded loaded) {
  now.outcome.config_digest = loaded.digest;
  for (const config::Problem& warning : loaded.warnings) log::warn("{}", warning.headline());
  if (world_.override_config) world_.override_config(loaded.config);
  if (config_) {
    Effective effective =
        keep_until_restart(*config_, std::move(loaded.config), directory_.max_workers());
    loaded.config = std::move(effective.config);
    now.outcome.not_applied = std::move(effective.not_applied);
  }
  now.written = std::make_shared<const config::Config>(loaded.config);
  now.overrides = overrides_;
  for (const std::string& what : now.overrides.apply(loaded.config))
    now.outcome.notes.push_back(
        fmt::format("{}: the file has changed, so it replaces what was set at run time", what));
  now.config = std::make_shared<config::Config>(std::move(loaded.config));
}

// What would move, and whether a guard forbids it. A list cut short is named before what it moves.
bool Reloader::weigh(Attempt& now) {
  auto changes = build_rings(*now.config, state_.routing.get());
  if (!changes) return fail_with(now, changes.error().message);
  now.changes = std::move(*changes);
  for (const PoolChange& pool : now.changes.pools)
    if (pool.build_seconds > 0) directory_.record_ring_build(pool.config->name, pool.build_seconds);
  if (now.outcome.forced) return true;

  for (const Guard guard : {Guard::max_shrink, Guard::max_remap}) {
    for (const PoolChange& pool : now.changes.pools) {
      if (!pool.refused() || pool.report.refused_by != guard) continue;
      if (now.outcome.pools.empty()) now.outcome.refused_by = guard;
      if (!now.outcome.pools.empty()) now.outcome.message += "; ";
      now.outcome.message += upstream::guard_reason(pool.report);
      now.outcome.result = ReloadResult::refused;
      now.outcome.pools.push_back(pool.report);
    }
  }
  if (now.outcome.result != ReloadResult::refused) return true;
  now.outcome.message += fmt::format("; a forced {} applies it all the same", now.act);
  now.outcome.config_digest = digest_;
  return false;
}

bool Reloader::find_servers(Attempt& now) {
  const std::set<std::string> names = host_names(*now.config);
  HostAddresses hosts;
  if (!names.empty()) hosts = world_.lookup(names, kLookupPatience);
  now.places = place_servers(*now.config, hosts, state_.routing.get());
  std::vector<config::Problem> fatal = fatal_names(file_, *now.config, now.places, world_.read);
  for (const Places::Unresolved& server : now.places.unresolved) {
    if (server.fatal) continue;
    if (server.kept)
      now.outcome.not_applied.push_back(
          {server.path,
           fmt::format("\"{}\" does not resolve: the addresses before stay in use until "
                       "it does",
                       server.address)});
    else
      log::warn("{}: \"{}\" does not resolve, it is tried again", server.path, server.address);
  }
  if (fatal.empty()) return true;
  count_unresolved(now.places);
  now.outcome.not_applied.clear();
  now.outcome.errors = std::move(fatal);
  return fail_with(now, now.outcome.errors.front().headline());
}

bool Reloader::open_listeners(Attempt& now) {
  for (const config::Listener& listener : now.config->listeners) {
    auto spec = world_.listen(*now.config, listener);
    if (!spec) return fail_with(now, spec.error().message);
    spec->counters = directory_.listener(listener.name);
    spec->counters->bound_address = spec->config.address.text;
    now.state.listeners.push_back(std::make_shared<proxy::ListenerSpec>(std::move(*spec)));
  }
  return true;
}

bool Reloader::open_log(Attempt& now) {
  if (config_ && config_->access_log == now.config->access_log) {
    now.state.log = state_.log;
    return true;
  }
  auto log = world_.open_log(*now.config);
  if (!log) return fail_with(now, log.error().message);
  now.state.log = std::move(*log);
  return true;
}

bool Reloader::open_stores(Attempt& now) {
  auto caches = open_caches(*now.config, state_.routing.get());
  if (!caches) return fail_with(now, caches.error().message);
  now.caches = std::move(*caches);
  return true;
}

bool Reloader::hand_over(Attempt& now) {
  now.state.routing = assemble(now.changes, now.places, now.caches, directory_,
                               state_.routing.get(), std::chrono::steady_clock::now());
  const auto adopted = world_.adopt(now.state, now.config->workers);
  if (adopted) return true;
  // All or nothing: back to what ran.
  if (state_.routing) (void)world_.adopt(state_, config_->workers);
  return fail_with(now, adopted.error().message);
}

void Reloader::publish(const Attempt& now) {
  state_ = now.state;
  config_ = now.config;
  written_ = now.written;
  overrides_ = now.overrides;
  digest_ = now.outcome.config_digest;
  names_ = host_names(*config_);
  unresolved_ = !now.places.unresolved.empty();
  tell_readers();
  count_unresolved(now.places);
}

void Reloader::tell_readers() {
  directory_.publish(state_.routing, config_, file_, digest_,
                     overrides_.empty() ? nullptr : written_);
}

// Only swaps that moved a key are remaps; the start moves nothing.
void Reloader::record_remaps(const Attempt& now) {
  for (const PoolChange& change : now.changes.pools) {
    if (!change.running || !change.report.ring_changed()) continue;
    upstream::Remap remap;
    remap.time = now.outcome.time;
    remap.cause = now.cause;
    remap.trigger = now.outcome.trigger;
    remap.forced = now.outcome.forced;
    remap.report = change.report;
    remap.before = to_text(upstream::placed(change.running->config));
    remap.watch = state_.routing->pool(change.config->name)->watch;
    directory_.record_remap(std::move(remap));
  }
}

void Reloader::finish(Attempt& now, std::chrono::steady_clock::time_point started) {
  account(now, started);
  turned_down_ = !taken(now.outcome);
  directory_.record_reload(now.outcome);
  if (now.outcome.trigger != Trigger::start) log_outcome(now.act, now.outcome);
}

// What happened, for whoever asked, and in the history.
void Reloader::account(Attempt& now, std::chrono::steady_clock::time_point started) {
  upstream::ReloadOutcome& outcome = now.outcome;
  outcome.time = upstream::WallClock::now();
  outcome.duration_seconds = seconds_since(started);
  if (outcome.result == ReloadResult::applied && outcome.trigger != Trigger::start) {
    for (const PoolChange& change : now.changes.pools)
      if (!change.running || change.report.changed()) outcome.pools.push_back(change.report);
    outcome.pools.insert(outcome.pools.end(), now.changes.removed.begin(),
                         now.changes.removed.end());
    outcome.message = applied_message(outcome);
    record_remaps(now);
  }
}

bool Reloader::fail_with(Attempt& now, std::string message) {
  now.outcome.result = ReloadResult::invalid;
  now.outcome.config_digest = digest_;
  if (now.outcome.errors.empty())
    now.outcome.errors.push_back({.position = {.file = file_}, .message = message, .source = {}});
  now.outcome.message = std::move(message);
  return false;
}

// Counted where the server has counters: one that never ran has none.
void Reloader::count_unresolved(const Places& places) {
  if (!state_.routing) return;
  for (const Places::Unresolved& lost : places.unresolved) {
    const upstream::Pool* pool = state_.routing->pool(lost.pool);
    if (pool == nullptr) continue;
    for (const upstream::Server& server : pool->servers)
      if (server.config.name == lost.server) ++server.backend->resolve_errors;
  }
}

void Reloader::refresh_names(std::chrono::milliseconds patience) {
  const HostAddresses hosts = world_.lookup(names_, patience);
  const Places places = place_servers(*config_, hosts, state_.routing.get());
  unresolved_ = !places.unresolved.empty();
  count_unresolved(places);
  auto routing = with_places(*state_.routing, places);
  if (!routing) return;
  proxy::WorkerState next = state_;
  next.routing = std::move(routing);
  if (const auto adopted = world_.adopt(next, config_->workers); !adopted) {
    log::warn("new addresses of servers: {}", adopted.error().message);
    return;
  }
  state_ = std::move(next);
  tell_readers();
  log::info("names of servers have new addresses");
}

// --- rollback ---------------------------------------------------------------------------------

upstream::RollbackResult Reloader::rollback(std::uint64_t id, bool force) {
  using Why = NoWayBack::Why;
  const upstream::History history = directory_.view().history;
  const auto found = std::ranges::find(history, id, [](const auto& remap) { return remap->id; });
  if (found == history.end())
    return NoWayBack{
        Why::unknown_change,
        fmt::format("no change {} is in the history; GET /api/v1/remaps lists it", id)};
  const upstream::Remap& remap = **found;
  const std::string& name = remap.report.pool;
  const config::Pool* pool = config_->pool(name);
  if (pool == nullptr)
    return NoWayBack{
        Why::pool_gone,
        fmt::format("change {} was of pool {}, which is no longer configured", id, name)};
  auto there = upstream::parse_placed(remap.before);
  if (remap.before.empty() || !there)
    return NoWayBack{
        Why::not_kept,
        fmt::format("the history no longer has the servers of pool {} before change {}", name, id)};
  if (pool->servers_file)
    return NoWayBack{Why::from_file,
                     by_hand(*pool->servers_file, *written_->pool(name), *pool, *there)};
  return go_back(id, name, std::move(*there), force);
}

upstream::ReloadOutcome Reloader::go_back(std::uint64_t id, const std::string& pool,
                                          upstream::Placed there, bool force) {
  const auto started = std::chrono::steady_clock::now();
  Attempt now = begin_override(force);
  now.act = fmt::format("rollback of change {}", id);
  config::Pool& changed = *std::ranges::find(now.config->pools, pool, &config::Pool::name);
  const config::Pool& written = *written_->pool(pool);
  there = brought_up_to_date(std::move(there), changed, written);
  changed.ring = there.ring;
  changed.servers = there.servers;
  now.overrides.set(written, std::move(there));
  const upstream::Pool& running = *state_.routing->pool(pool);
  if (upstream::ring_digest(changed, running.ring->order_matters()) == running.digest)
    now.outcome.result = ReloadResult::unchanged;
  else
    swap_ring(now);
  return finish_override(now, started);
}

// An attempt that no file asks for.
Reloader::Attempt Reloader::begin_override(bool force) {
  Attempt now;
  now.cause = "api";
  now.outcome.trigger = Trigger::api;
  now.outcome.forced = force;
  now.outcome.config_digest = digest_;
  now.written = written_;
  now.overrides = overrides_;
  now.config = std::make_shared<config::Config>(*config_);
  return now;
}

void Reloader::swap_ring(Attempt& now) {
  if (!weigh(now)) return;
  if (!find_servers(now)) {
    // The servers are not those of the file, so they have no place there.
    for (config::Problem& problem : now.outcome.errors) {
      problem.position = {};
      problem.source = {};
    }
    now.outcome.message = now.outcome.errors.front().message;
    return;
  }
  now.state.listeners = state_.listeners;
  now.state.log = state_.log;
  if (!open_stores(now) || !hand_over(now)) return;
  publish(now);
  now.outcome.result = ReloadResult::applied;
}

upstream::ReloadOutcome Reloader::finish_override(Attempt& now,
                                                  std::chrono::steady_clock::time_point started) {
  account(now, started);
  if (now.outcome.result == ReloadResult::refused) directory_.record_refusal(now.outcome.pools);
  log_outcome(now.act, now.outcome);
  return std::move(now.outcome);
}

// --- one server -------------------------------------------------------------------------------

upstream::ServerChangeResult Reloader::change_server(const upstream::ServerChange& change,
                                                     bool force) {
  const auto started = std::chrono::steady_clock::now();
  Attempt now = begin_override(force);
  const auto pool = std::ranges::find(now.config->pools, change.pool, &config::Pool::name);
  if (pool == now.config->pools.end())
    return upstream::NoSuchServer{fmt::format("no pool is named {}", config::quoted(change.pool))};
  const auto server = std::ranges::find(pool->servers, change.server, &config::Server::name);
  if (server == pool->servers.end())
    return upstream::NoSuchServer{
        fmt::format("pool {} has no server named {}", change.pool, config::quoted(change.server))};

  const config::Server before = *server;
  if (change.state) server->state = *change.state;
  if (change.weight) server->weight = *change.weight;
  const bool drains = before.on_ring() && server->state == config::ServerState::draining;
  now.act = fmt::format("change of server {} of pool {}", server->name, pool->name);
  now.cause = drains ? "drain" : "api";
  now.overrides.set_server(*written_->pool(change.pool), *config_->pool(change.pool), *server);
  // By the rules for what is written: whole weights where the scheme needs them, and the like.
  if (const auto valid = upstream::parse_placed(to_text(upstream::placed(*pool))); !valid)
    fail_with(now, valid.error().message);
  else if (*server == before)
    now.outcome.result = ReloadResult::unchanged;
  else
    swap_ring(now);
  return finish_override(now, started);
}

}  // namespace clockwise::runtime
