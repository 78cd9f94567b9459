#include "cli/fleet_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

namespace clockwise::cli {

namespace {

namespace json = boost::json;

constexpr std::size_t kFindingsShown = 20;  // of a pool

std::string urls_of(const Camp& camp) {
  std::vector<std::string> urls;
  for (const FleetProxy* proxy : camp.proxies) urls.push_back(proxy->url);
  return fmt::format("{}", fmt::join(urls, ", "));
}

std::string headline(const std::string& pool, const std::vector<Camp>& camps) {
  std::size_t all = 0;
  for (const Camp& camp : camps) all += camp.proxies.size();
  const std::size_t most = camps.front().proxies.size();
  if (most == all) return fmt::format("pool {}: {} of {} agree\n", pool, all, all);
  return fmt::format("pool {}: {} rings, the most common at {} of {}\n", pool, camps.size(), most,
                     all);
}

std::string of_pool(const std::string& pool, const std::vector<Difference>& differences) {
  std::string text;
  std::size_t count = 0;
  for (const Difference& difference : differences) {
    if (difference.pool != pool) continue;
    const std::string what =
        difference.server ? "server " + *difference.server : std::string("ring");
    for (const Finding& finding : difference.findings)
      if (++count <= kFindingsShown)
        text += fmt::format("  {}: {}, at {}\n", what, finding.text, fmt::join(finding.urls, ", "));
  }
  if (count > kFindingsShown)
    text += fmt::format("  and {} more; --json has them all\n", count - kFindingsShown);
  return text;
}

}  // namespace

bool FleetReport::complete() const {
  return std::ranges::none_of(proxies, [](const FleetProxy& proxy) { return bool(proxy.error); });
}

FleetReport compare_fleet(std::vector<FleetProxy> proxies) {
  FleetReport report{std::move(proxies), {}, {}};
  report.camps = camps_of(report.proxies);
  report.differences = differences(report.camps);
  return report;
}

std::string fleet_text(const FleetReport& report) {
  std::string text;
  const auto answered =
      std::ranges::count_if(report.proxies, [](const FleetProxy& proxy) { return !proxy.error; });
  if (report.camps.empty() && answered > 0)
    text = fmt::format("no pools at {} of {} proxies: nothing to compare\n", answered,
                       report.proxies.size());
  for (const auto& [pool, camps] : report.camps) {
    text += headline(pool, camps);
    for (const Camp& camp : camps)
      text += fmt::format("  {:<16}  {}\n", camp.digest.value_or("no such pool"), urls_of(camp));
    text += of_pool(pool, report.differences);
  }
  return text;
}

json::object to_json(const FleetReport& report) {
  json::array proxies, differences;
  for (const FleetProxy& proxy : report.proxies) {
    json::array pools;
    for (const FleetPool& pool : proxy.pools)
      pools.push_back(json::object{{"pool", pool.name}, {"digest", pool.digest}});
    json::object object{{"url", proxy.url}, {"pools", std::move(pools)}};
    if (proxy.error) object["error"] = *proxy.error;
    proxies.push_back(std::move(object));
  }
  for (const Difference& difference : report.differences) {
    json::array findings;
    for (const Finding& finding : difference.findings)
      findings.push_back(
          json::object{{"text", finding.text}, {"urls", json::value_from(finding.urls)}});
    json::object object{{"pool", difference.pool},
                        {"server", nullptr},
                        {"urls", json::value_from(difference.urls())},
                        {"findings", std::move(findings)}};
    if (difference.server) object["server"] = *difference.server;
    differences.push_back(std::move(object));
  }
  return {{"agree", report.agree()},
          {"proxies", std::move(proxies)},
          {"differences", std::move(differences)}};
}

}  // namespace clockwise::cli
