// The answers of the admin API as JSON: docs/admin-api.md shows each shape.
//
// Pure: a view in, a document out.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "upstream/directory.h"
#include "upstream/explain.h"
#include "upstream/reload_port.h"

namespace clockwise::admin {

// "2024-05-01T12:00:00.250Z"
[[nodiscard]] std::string rfc3339(upstream::WallClock::time_point time);

// {"file", "line", "column"}, or null for a problem of the file as a whole.
[[nodiscard]] boost::json::value describe(const config::Position& position);
[[nodiscard]] boost::json::object describe(const config::Problem& problem, std::string_view code);
[[nodiscard]] boost::json::array describe(const std::vector<config::Problem>& problems,
                                          std::string_view code);
// {"error": {"code", "message", "position"}}
[[nodiscard]] boost::json::object describe_error(std::string_view code, std::string_view message,
                                                 boost::json::value position = nullptr);

[[nodiscard]] boost::json::object describe_status(const upstream::View& view,
                                                  std::string_view admin_address,
                                                  upstream::WallClock::time_point now);
[[nodiscard]] boost::json::object describe_pool(const upstream::View& view,
                                                const upstream::Pool& pool);
[[nodiscard]] boost::json::object describe_cache(const upstream::View& view,
                                                 const upstream::Cache& cache);
[[nodiscard]] boost::json::object describe_ring(const upstream::Pool& pool);
[[nodiscard]] boost::json::object describe_remaps(const upstream::View& view);

// Each key and where it is, with the health and the load of this moment.
[[nodiscard]] boost::json::object describe_lookup(const upstream::View& view,
                                                  const upstream::Pool& pool,
                                                  const std::vector<upstream::Question>& wanted,
                                                  std::uint32_t replicas);

// The answer to a reload and its status: 200, or 409 with what is wrong or which guard refused.
struct ReloadAnswer {
  unsigned status;
  boost::json::object body;
};
[[nodiscard]] ReloadAnswer describe_reload(const upstream::ReloadOutcome& outcome);
// The same for a rollback; 404 for a change that is not known.
[[nodiscard]] ReloadAnswer describe_rollback(const upstream::RollbackResult& result);
// The same for the change of a server; 404 for one that is not known.
[[nodiscard]] ReloadAnswer describe_server_change(const upstream::ServerChangeResult& result);

// The value below which the share `q` of the observations lies, evenly spread within a bucket as
// Prometheus assumes; null without any, the largest bound when it lies above that.
[[nodiscard]] boost::json::value quantile(std::span<const std::uint64_t> bounds_ns,
                                          std::span<const std::uint64_t> buckets, double q);

}  // namespace clockwise::admin
