#include "runtime/reloader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "runtime/log.h"
#include "runtime/preflight.h"

namespace clockwise::runtime {
namespace {

using namespace std::chrono_literals;
using upstream::Guard;
using upstream::ReloadResult;
using upstream::Trigger;

constexpr auto kLookupPatience = 5s;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string applied_message(const upstream::ReloadOutcome& outcome) {
  std::vector<std::string> parts;
  for (const upstream::Report& report : outcome.pools)
    parts.push_back(fmt::format("pool {}: {}", report.pool, upstream::summary(report)));
  if (parts.empty()) parts.emplace_back("settings changed, no key moved");
  return fmt::format("{}", fmt::join(parts, "; "));
}

void log_outcome(const upstream::ReloadOutcome& outcome) {
  const std::string what =
      fmt::format("reload ({}): {}", to_string(outcome.trigger), to_string(outcome.result));
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
  for (const upstream::NotApplied& left : outcome.not_applied)
    log::warn("not applied: {}: {}", left.path, left.reason);
}

}  // namespace

Reloader::Reloader(std::string file, upstream::Directory& directory, World world)
    : file_(std::move(file)), directory_(directory), world_(std::move(world)) {}

upstream::ReloadOutcome Reloader::start(config::Loaded loaded, FileMarks marks) {
  const auto started = std::chrono::steady_clock::now();
  Attempt now;
  now.outcome.trigger = Trigger::start;
  accept(now, std::move(loaded), std::move(marks));
  attempt(now);
  finish(now, started);
  return std::move(now.outcome);
}

upstream::ReloadOutcome Reloader::reload(Trigger trigger, bool force) {
  const auto started = std::chrono::steady_clock::now();
  Attempt now;
  now.outcome.trigger = trigger;
  now.outcome.forced = force;
  if (load(now)) attempt(now);
  finish(now, started);
  return std::move(now.outcome);
}

void Reloader::attempt(Attempt& now) {
  if (config_ && same_meaning(*config_, *now.config)) {
    now.outcome.result = ReloadResult::unchanged;
    // The text may differ (comments, order): the status names the file that is there now.
    if (now.outcome.config_digest != digest_)
      directory_.publish(state_.routing, config_, file_, now.outcome.config_digest);
    digest_ = now.outcome.config_digest;
    return;
  }
  if (!weigh(now) || !find_servers(now)) return;
  if (open_listeners(now) && hand_over(now)) {
    publish(now);
    now.outcome.result = ReloadResult::applied;
  }
  if (config_) world_.keep_only(config_->listeners);
}

bool Reloader::load(Attempt& now) {
  FileMarks marks;
  config::LoadResult result = config::load(file_, marking(world_.read, marks), world_.environment);
  if (auto* failure = std::get_if<config::Failure>(&result)) {
    // The files of the running configuration stay watched beside those that were missed.
    const config::FileReader look = marking(world_.read, marks);
    for (const auto& [path, mark] : marks_)
      if (!marks.contains(path)) (void)look(path);
    marks_ = std::move(marks);
    now.outcome.result = failure->code == config::FailureCode::unreadable ? ReloadResult::unreadable
                                                                          : ReloadResult::invalid;
    now.outcome.message = failure->problems.front().headline();
    now.outcome.errors = std::move(failure->problems);
    now.outcome.config_digest = digest_;
    return false;
  }
  accept(now, std::move(std::get<config::Loaded>(result)), std::move(marks));
  return true;
}

void Reloader::accept(Attempt& now, config::Loaded loaded, FileMarks marks) {
  marks_ = std::move(marks);
  now.outcome.config_digest = loaded.digest;
  for (const config::Problem& warning : loaded.warnings) log::warn("{}", warning.headline());
  if (world_.override_config) world_.override_config(loaded.config);
  if (config_) {
    Effective effective = keep_until_restart(*config_, std::move(loaded.config));
    loaded.config = std::move(effective.config);
    now.outcome.not_applied = std::move(effective.not_applied);
  }
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
  now.outcome.message += "; a forced reload applies it all the same";
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

bool Reloader::hand_over(Attempt& now) {
  now.state.routing = assemble(now.changes, now.places, directory_, state_.routing.get(),
                               std::chrono::steady_clock::now());
  const auto adopted = world_.adopt(now.state);
  if (adopted) return true;
  if (state_.routing) (void)world_.adopt(state_);  // all or nothing: back to what ran
  return fail_with(now, adopted.error().message);
}

void Reloader::publish(const Attempt& now) {
  state_ = now.state;
  config_ = now.config;
  digest_ = now.outcome.config_digest;
  names_ = host_names(*config_);
  unresolved_ = !now.places.unresolved.empty();
  directory_.publish(state_.routing, config_, file_, digest_);
  count_unresolved(now.places);
}

// Only swaps that moved a key are remaps; the start moves nothing.
void Reloader::record_remaps(const Attempt& now) {
  for (const PoolChange& change : now.changes.pools) {
    if (!change.running || !change.report.ring_changed()) continue;
    upstream::Remap remap;
    remap.time = now.outcome.time;
    remap.cause = "reload";
    remap.trigger = now.outcome.trigger;
    remap.forced = now.outcome.forced;
    remap.report = change.report;
    remap.watch = state_.routing->pool(change.config->name)->watch;
    directory_.record_remap(std::move(remap));
  }
}

void Reloader::finish(Attempt& now, std::chrono::steady_clock::time_point started) {
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
  directory_.record_reload(outcome);
  if (outcome.trigger != Trigger::start) log_outcome(outcome);
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
  proxy::WorkerState next{.routing = std::move(routing), .listeners = state_.listeners};
  if (const auto adopted = world_.adopt(next); !adopted) {
    log::warn("new addresses of servers: {}", adopted.error().message);
    return;
  }
  state_ = std::move(next);
  directory_.publish(state_.routing, config_, file_, digest_);
  log::info("names of servers have new addresses");
}

}  // namespace clockwise::runtime
