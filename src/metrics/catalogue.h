// The catalogue: every metric of the product with its type, labels, unit and meaning, here and
// nowhere else. docs/metrics.md is its page; a test keeps the two together.
//
// Names and labels are part of the interface. A metric is never renamed in place, its labels take
// values only from the configuration or from fixed lists, never from a request.
#pragma once

#include <prometheus/metric_type.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace clockwise::metrics {

// In the order of the page.
enum class Id : std::uint8_t {
  build_info,
  process_start_time_seconds,
  process_cpu_seconds_total,
  process_resident_memory_bytes,
  process_open_fds,
  process_max_fds,
  worker_busy_seconds_total,
  worker_loop_delay_seconds,
  log_messages_dropped_total,
  metrics_series,
  metrics_series_suppressed_total,
  metrics_render_duration_seconds,

  config_reloads_total,
  config_last_reload_successful,
  config_last_reload_success_timestamp_seconds,
  config_last_reload_attempt_timestamp_seconds,
  config_reload_duration_seconds,
  config_info,
  config_watch_up,

  ring_info,
  ring_backends,
  ring_share_ratio,
  backend_weight,
  ring_build_duration_seconds,

  remaps_total,
  remap_keyspace_moved_total,
  remap_last_moved_ratio,
  remap_last_minimum_ratio,
  remap_last_lost_ratio,
  remap_last_gained_ratio,
  remap_last_timestamp_seconds,
  remapped_requests_total,
  remap_refused_total,
  handoff_active,
  handoff_requests_total,

  requests_routed_total,
  retries_total,
  retries_suppressed_total,
  hedges_total,

  backend_requests_total,
  backend_requests_in_flight,
  backend_request_duration_seconds,
  backend_sent_bytes_total,
  backend_received_bytes_total,
  backend_connections,
  backend_connections_opened_total,
  backend_errors_total,
  backend_queue,
  backend_queue_rejected_total,
  backend_up,
  backend_draining,
  backend_health_checks_total,
  backend_transitions_total,
  backend_ejections_total,
  pool_panic,

  http_requests_total,
  http_request_duration_seconds,
  http_requests_in_flight,
  http_connections,
  http_connections_accepted_total,
  http_connections_rejected_total,
  http_request_errors_total,
  http_received_bytes_total,
  http_sent_bytes_total,

  cache_requests_total,
  cache_fetches_total,
  cache_stored_bytes,
  cache_limit_bytes,
  cache_objects,
  cache_evictions_total,
  cache_admissions_rejected_total,
  cache_collapsed_waiting,
  cache_purges_total,
  cache_sent_bytes_total,
  cache_revalidations_total,
  cache_eviction_age_seconds,
  cache_shared_lookups_total,
  cache_shared_writes_total,

  memcached_commands_total,
  memcached_keys_digested_total,
  memcached_backfills_total,

  count
};

inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Id::count);

struct Metric {
  Id id;
  std::string_view name;
  prometheus::MetricType type;
  std::array<std::string_view, 3> labels;  // unused ones are empty
  std::string_view unit;
  std::string_view help;  // one line without a backslash: it is written out as it stands

  [[nodiscard]] constexpr std::size_t label_count() const noexcept {
    std::size_t n = 0;
    while (n < labels.size() && !labels[n].empty()) ++n;
    return n;
  }
  [[nodiscard]] constexpr bool has_label(std::string_view label) const noexcept {
    for (const std::string_view own : labels)
      if (own == label) return true;
    return false;
  }
};

[[nodiscard]] std::span<const Metric, kMetrics> catalogue() noexcept;
[[nodiscard]] const Metric& metric(Id id) noexcept;

// The fixed values of labels, in the order of the enums of cells.h, cache/ and upstream/.
inline constexpr std::array<std::string_view, 5> kBackendCodes{"2xx", "3xx", "4xx", "5xx", "error"};
inline constexpr std::array<std::string_view, 5> kClientCodes{"2xx", "3xx", "4xx", "5xx",
                                                              "aborted"};
inline constexpr std::array<std::string_view, 6> kBackendErrors{"resolve", "connect", "tls",
                                                                "timeout", "reset",   "protocol"};
inline constexpr std::array<std::string_view, 6> kRouted{"home", "failover", "overflow",
                                                         "hot",  "drain",    "ramp"};
inline constexpr std::array<std::string_view, 5> kRetryReasons{"connect", "reset", "timeout",
                                                               "status", "stale_connection"};
inline constexpr std::array<std::string_view, 4> kSuppressed{"budget", "unsafe_method", "body_sent",
                                                             "no_candidate"};
inline constexpr std::array<std::string_view, 3> kHedged{"won", "lost", "cancelled"};
inline constexpr std::array<std::string_view, 2> kQueueRejected{"full", "timeout"};
inline constexpr std::array<std::string_view, 8> kRequestErrors{
    "malformed",      "framing", "header_too_large", "uri_too_long",
    "body_too_large", "timeout", "method",           "no_backend"};
inline constexpr std::array<std::string_view, 4> kRejected{"limit", "memory", "tls", "shutdown"};
inline constexpr std::array<std::string_view, 8> kMemcachedVerbs{
    "get", "set", "add", "replace", "append", "incr", "delete", "touch"};
inline constexpr std::array<std::string_view, 5> kMemcachedResults{"hit", "miss", "stored",
                                                                   "not_stored", "error"};
inline constexpr std::array<std::string_view, 5> kBackfillResults{"copied", "present", "outdated",
                                                                  "skipped", "error"};
inline constexpr std::array<std::string_view, 5> kRemapCauses{"reload", "discovery", "ramp",
                                                              "drain", "api"};
inline constexpr std::array<std::string_view, 4> kHandoffResults{"hit", "miss", "error", "skipped"};
inline constexpr std::array<std::string_view, 6> kCacheResults{"hit",  "stale",     "revalidated",
                                                               "miss", "collapsed", "bypass"};
inline constexpr std::array<std::string_view, 4> kCacheFetches{"miss", "revalidate", "background",
                                                               "prefetch"};
inline constexpr std::array<std::string_view, 3> kRevalidations{"not_modified", "replaced",
                                                                "failed"};
inline constexpr std::array<std::string_view, 4> kEvictionReasons{"size", "expired", "purged",
                                                                  "invalidated"};
inline constexpr std::array<std::string_view, 2> kTiers{"memory", "memcached"};
inline constexpr std::array<std::string_view, 5> kSharedLookups{"hit", "stale", "miss", "late",
                                                                "error"};
inline constexpr std::array<std::string_view, 5> kSharedWrites{"stored", "outdated", "too_large",
                                                               "busy", "error"};
inline constexpr std::array<std::string_view, 5> kPurgeScopes{"url", "prefix", "host", "tag",
                                                              "all"};
inline constexpr std::array<std::string_view, 2> kPurgeResults{"ok", "error"};

}  // namespace clockwise::metrics
