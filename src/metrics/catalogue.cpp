#include "metrics/catalogue.h"

namespace clockwise::metrics {

namespace {

constexpr auto counter = prometheus::MetricType::Counter;
constexpr auto gauge = prometheus::MetricType::Gauge;
constexpr auto histogram = prometheus::MetricType::Histogram;

// clang-format off
constexpr std::array<Metric, kMetrics> kCatalogue{{
  // Build and process
  {Id::build_info, "clockwise_build_info", gauge, {"version", "revision", "compiler"}, "1",
   "Always 1; the labels say what runs."},
  {Id::process_start_time_seconds, "process_start_time_seconds", gauge, {}, "seconds",
   "Unix time of the start. A change means a restart, the only event after which counters start again at 0."},
  {Id::process_cpu_seconds_total, "process_cpu_seconds_total", counter, {}, "seconds",
   "CPU time, user and system."},
  {Id::process_resident_memory_bytes, "process_resident_memory_bytes", gauge, {}, "bytes",
   "Resident memory."},
  {Id::process_open_fds, "process_open_fds", gauge, {}, "descriptors",
   "Open file descriptors."},
  {Id::process_max_fds, "process_max_fds", gauge, {}, "descriptors",
   "Limit of open file descriptors."},
  {Id::worker_busy_seconds_total, "clockwise_worker_busy_seconds_total", counter, {"worker"}, "seconds",
   "Time the event loop of the worker was running handlers. A rate near 1 means it is saturated."},
  {Id::worker_loop_delay_seconds, "clockwise_worker_loop_delay_seconds", histogram, {}, "seconds",
   "Delay between the due time and the run time of a probe timer on each event loop."},
  {Id::log_messages_dropped_total, "clockwise_log_messages_dropped_total", counter, {}, "messages",
   "Log lines thrown away since the sink could not keep up."},
  {Id::metrics_series, "clockwise_metrics_series", gauge, {}, "series",
   "Series in this answer."},
  {Id::metrics_series_suppressed_total, "clockwise_metrics_series_suppressed_total", counter, {}, "series",
   "Series not created since metrics.max_series was reached. Stays 0 in normal use."},
  {Id::metrics_render_duration_seconds, "clockwise_metrics_render_duration_seconds", gauge, {}, "seconds",
   "Time it took to build the answer before this one."},

  // Configuration and reload
  {Id::config_reloads_total, "clockwise_config_reloads_total", counter, {"trigger", "result"}, "reloads",
   "Attempts to load the configuration, by what asked for it and how it ended."},
  {Id::config_last_reload_successful, "clockwise_config_last_reload_successful", gauge, {}, "0/1",
   "1 when the newest attempt was applied or changed nothing, 0 when it was turned down and the configuration before it still serves."},
  {Id::config_last_reload_success_timestamp_seconds, "clockwise_config_last_reload_success_timestamp_seconds", gauge, {}, "seconds",
   "Unix time when the running configuration was applied."},
  {Id::config_last_reload_attempt_timestamp_seconds, "clockwise_config_last_reload_attempt_timestamp_seconds", gauge, {}, "seconds",
   "Unix time of the newest attempt to load the configuration."},
  {Id::config_reload_duration_seconds, "clockwise_config_reload_duration_seconds", histogram, {}, "seconds",
   "Time of an applied reload, from noticing the change until every worker routes by it."},
  {Id::config_info, "clockwise_config_info", gauge, {"digest"}, "1",
   "Always 1; the label is the digest of the configuration that runs."},
  {Id::config_watch_up, "clockwise_config_watch_up", gauge, {}, "0/1",
   "1 while changes of the configuration files are seen."},

  // Ring
  {Id::ring_info, "clockwise_ring_info", gauge, {"pool", "digest", "placement"}, "1",
   "Always 1. Equal digests mean equal owners for every key: placement, servers and weights, independent of order, addresses and health."},
  {Id::ring_backends, "clockwise_ring_backends", gauge, {"pool", "state"}, "backends",
   "Servers by state. All of the list are configured; usable ones may be sent new requests."},
  {Id::ring_share_ratio, "clockwise_ring_share_ratio", gauge, {"pool", "backend"}, "ratio",
   "Exact part of the hash space the server owns, health left out. Sums to 1 for each pool."},
  {Id::backend_weight, "clockwise_backend_weight", gauge, {"pool", "backend"}, "weight",
   "Configured weight. The expected share is the weight over the sum of the weights."},
  {Id::ring_build_duration_seconds, "clockwise_ring_build_duration_seconds", histogram, {"pool"}, "seconds",
   "Time to build a ring, off the event loops."},

  // Remap
  {Id::remaps_total, "clockwise_remaps_total", counter, {"pool", "cause"}, "remaps",
   "Changes of the ring that gave at least one key another owner. Health never changes the ring."},
  {Id::remap_keyspace_moved_total, "clockwise_remap_keyspace_moved_total", counter, {"pool", "cause"}, "key spaces",
   "Sum of the exact moved shares of all changes: 1 is as much as one whole key space."},
  {Id::remap_last_moved_ratio, "clockwise_remap_last_moved_ratio", gauge, {"pool"}, "ratio",
   "Share of the hash space whose owner the newest change of the ring changed. Exact, unless the "
   "change was to another key or hash."},
  {Id::remap_last_minimum_ratio, "clockwise_remap_last_minimum_ratio", gauge, {"pool"}, "ratio",
   "Smallest share that any placement would have had to move for the same change."},
  {Id::remap_last_lost_ratio, "clockwise_remap_last_lost_ratio", gauge, {"pool", "backend"}, "ratio",
   "Share of the hash space the server gave away in the newest change."},
  {Id::remap_last_gained_ratio, "clockwise_remap_last_gained_ratio", gauge, {"pool", "backend"}, "ratio",
   "Share of the hash space the server received in the newest change."},
  {Id::remap_last_timestamp_seconds, "clockwise_remap_last_timestamp_seconds", gauge, {"pool"}, "seconds",
   "Unix time of the newest change of the ring; 0 before the first."},
  {Id::remapped_requests_total, "clockwise_remapped_requests_total", counter, {"pool", "cause"}, "requests",
   "Client requests whose owner differs from the one before the newest change, counted while clockwise_handoff_active is 1."},
  {Id::remap_refused_total, "clockwise_remap_refused_total", counter, {"pool"}, "remaps",
   "Changes that max_remap or max_shrink refused."},
  {Id::handoff_active, "clockwise_handoff_active", gauge, {"pool"}, "0/1",
   "1 while the ring before the newest change is remembered."},
  {Id::handoff_requests_total, "clockwise_handoff_requests_total", counter, {"pool", "result"}, "requests",
   "Reads sent to the previous owner of a moved key after a miss at the new one."},

  // Routing
  {Id::requests_routed_total, "clockwise_requests_routed_total", counter, {"pool", "reason"}, "requests",
   "Client requests, each once, by why the server that gave the final answer was chosen. Anything but home is off home."},
  {Id::retries_total, "clockwise_retries_total", counter, {"pool", "reason"}, "attempts",
   "Further attempts by what made them necessary."},
  {Id::retries_suppressed_total, "clockwise_retries_suppressed_total", counter, {"pool", "reason"}, "attempts",
   "Further attempts that were not made, by what forbade them; no_candidate also when all of retry.attempts were used."},
  {Id::hedges_total, "clockwise_hedges_total", counter, {"pool", "result"}, "attempts",
   "Second attempts sent since the first was slow, by how they ended: their answer was used, the first answer came before theirs, or neither."},

  // Servers
  {Id::backend_requests_total, "clockwise_backend_requests_total", counter, {"pool", "backend", "code"}, "attempts",
   "Attempts by outcome; error means no complete answer. Interim answers are not counted."},
  {Id::backend_requests_in_flight, "clockwise_backend_requests_in_flight", gauge, {"pool", "backend"}, "requests",
   "Attempts open now."},
  {Id::backend_request_duration_seconds, "clockwise_backend_request_duration_seconds", histogram, {"pool", "backend"}, "seconds",
   "From dispatch to the last byte of the answer, attempts with an answer only."},
  {Id::backend_sent_bytes_total, "clockwise_backend_sent_bytes_total", counter, {"pool", "backend"}, "bytes",
   "Bytes written to the server, headers included."},
  {Id::backend_received_bytes_total, "clockwise_backend_received_bytes_total", counter, {"pool", "backend"}, "bytes",
   "Bytes read from the server, headers included."},
  {Id::backend_connections, "clockwise_backend_connections", gauge, {"pool", "backend", "state"}, "connections",
   "Open connections to the server."},
  {Id::backend_connections_opened_total, "clockwise_backend_connections_opened_total", counter, {"pool", "backend"}, "connections",
   "Connections opened to the server."},
  {Id::backend_errors_total, "clockwise_backend_errors_total", counter, {"pool", "backend", "reason"}, "errors",
   "Errors of the server by reason."},
  {Id::backend_queue, "clockwise_backend_queue", gauge, {"pool", "backend"}, "requests",
   "Requests that wait for one of connections.max connections."},
  {Id::backend_queue_rejected_total, "clockwise_backend_queue_rejected_total", counter, {"pool", "backend", "reason"}, "requests",
   "Requests answered with 503 since the queue for a connection was full or the wait in it too long."},
  {Id::backend_up, "clockwise_backend_up", gauge, {"pool", "backend"}, "0/1",
   "1 when new requests may be sent to the server."},
  {Id::backend_draining, "clockwise_backend_draining", gauge, {"pool", "backend"}, "0/1",
   "1 while the server is draining."},
  {Id::backend_health_checks_total, "clockwise_backend_health_checks_total", counter, {"pool", "backend", "result"}, "checks",
   "Active checks of the server by result: pass, fail."},
  {Id::backend_transitions_total, "clockwise_backend_transitions_total", counter, {"pool", "backend"}, "transitions",
   "Changes between usable and not usable. A high rate is a server that flaps."},
  {Id::backend_ejections_total, "clockwise_backend_ejections_total", counter, {"pool", "backend"}, "ejections",
   "Ejections caused by real traffic, not by active checks."},
  {Id::pool_panic, "clockwise_pool_panic", gauge, {"pool"}, "0/1",
   "1 while so few servers can be used that health is left out of account."},

  // Clients
  {Id::http_requests_total, "clockwise_http_requests_total", counter, {"listener", "code"}, "requests",
   "Finished requests; aborted means the client got no complete answer."},
  {Id::http_request_duration_seconds, "clockwise_http_request_duration_seconds", histogram, {"listener"}, "seconds",
   "From the first byte of the request to the last byte of the answer."},
  {Id::http_requests_in_flight, "clockwise_http_requests_in_flight", gauge, {"listener"}, "requests",
   "Requests open now."},
  {Id::http_connections, "clockwise_http_connections", gauge, {"listener", "state"}, "connections",
   "Client connections."},
  {Id::http_connections_accepted_total, "clockwise_http_connections_accepted_total", counter, {"listener"}, "connections",
   "Client connections accepted."},
  {Id::http_connections_rejected_total, "clockwise_http_connections_rejected_total", counter, {"listener", "reason"}, "connections",
   "Client connections turned away."},
  {Id::http_request_errors_total, "clockwise_http_request_errors_total", counter, {"listener", "reason"}, "requests",
   "Requests that the proxy refused before a server was asked."},
  {Id::http_received_bytes_total, "clockwise_http_received_bytes_total", counter, {"listener"}, "bytes",
   "Bytes read from clients."},
  {Id::http_sent_bytes_total, "clockwise_http_sent_bytes_total", counter, {"listener"}, "bytes",
   "Bytes written to clients."},

  // Cache
  {Id::cache_requests_total, "clockwise_cache_requests_total", counter, {"pool", "cache", "result"}, "requests",
   "Requests by what the cache made of them, as Cache-Status tells; collapsed ones waited for the fetch of another."},
  {Id::cache_fetches_total, "clockwise_cache_fetches_total", counter, {"pool", "cache", "reason"}, "fetches",
   "Fetches that the cache began, by why; background ones are for a stale answer, prefetch for one that will soon be."},
  {Id::cache_stored_bytes, "clockwise_cache_stored_bytes", gauge, {"cache", "tier"}, "bytes",
   "Bytes held, with keys, heads and the index; tier memcached: written by this proxy and not known to be gone."},
  {Id::cache_limit_bytes, "clockwise_cache_limit_bytes", gauge, {"cache", "tier"}, "bytes",
   "Configured limit of what is held."},
  {Id::cache_objects, "clockwise_cache_objects", gauge, {"cache", "tier"}, "objects",
   "Answers held; each variant is one. tier memcached: as for the bytes."},
  {Id::cache_evictions_total, "clockwise_cache_evictions_total", counter, {"cache", "tier", "reason"}, "objects",
   "Answers that left: for others, since they were of no more use, by a purge, or by a request that changed what they show."},
  {Id::cache_admissions_rejected_total, "clockwise_cache_admissions_rejected_total", counter, {"cache", "tier"}, "objects",
   "Answers not stored since there was no room for them."},
  {Id::cache_collapsed_waiting, "clockwise_cache_collapsed_waiting", gauge, {"cache"}, "requests",
   "Requests that wait for the fetch of another."},
  {Id::cache_purges_total, "clockwise_cache_purges_total", counter, {"cache", "scope", "result"}, "purges",
   "Purges asked for; error means that nothing was done."},
  {Id::cache_sent_bytes_total, "clockwise_cache_sent_bytes_total", counter, {"cache", "source"}, "bytes",
   "Bytes of bodies sent to clients, by where they came from."},
  {Id::cache_revalidations_total, "clockwise_cache_revalidations_total", counter, {"cache", "result"}, "revalidations",
   "Stale answers about which the origin was asked, by what it said: still right, another one, or nothing."},
  {Id::cache_eviction_age_seconds, "clockwise_cache_eviction_age_seconds", histogram, {"cache"}, "seconds",
   "Age of answers that left for others."},
  {Id::cache_shared_lookups_total, "clockwise_cache_shared_lookups_total", counter, {"cache", "result"}, "lookups",
   "Look-ups in the store that proxies share, by what they came to; late ones took longer than pool_budget."},
  {Id::cache_shared_writes_total, "clockwise_cache_shared_writes_total", counter, {"cache", "result"}, "writes",
   "Answers for the store that proxies share; outdated ones came after another or a purge, busy ones met too many at once."},

  // Memcached
  {Id::memcached_commands_total, "clockwise_memcached_commands_total", counter, {"pool", "command", "result"}, "commands",
   "What servers of the pool were asked, each key of a command by itself; error means no answer, or one that says so."},
  {Id::memcached_keys_digested_total, "clockwise_memcached_keys_digested_total", counter, {"pool"}, "keys",
   "Keys that were too long, so that a digest stands for their end."},
  {Id::memcached_backfills_total, "clockwise_memcached_backfills_total", counter, {"pool", "result"}, "items",
   "Items that a later owner had and an earlier one had not, by what became of the copy; skipped: too many at once, or not to be copied."},
}};
// clang-format on

constexpr bool in_order_of_ids() {
  for (std::size_t i = 0; i < kCatalogue.size(); ++i)
    if (static_cast<std::size_t>(kCatalogue[i].id) != i) return false;
  return true;
}
static_assert(in_order_of_ids());

}  // namespace

std::span<const Metric, kMetrics> catalogue() noexcept { return kCatalogue; }

const Metric& metric(Id id) noexcept { return kCatalogue[static_cast<std::size_t>(id)]; }

}  // namespace clockwise::metrics
