// `clockwise fleet`: do the proxies of a fleet place every key alike?
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cli/admin_client.h"
#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/fleet_text.h"
#include "cli/streams.h"
#include "upstream/json.h"

namespace clockwise::cli {
namespace {

constexpr std::string_view kCommand = "fleet";
constexpr std::size_t kAtOnce = 64;

FleetProxy ask(const std::string& url, const FleetOptions& options) {
  FleetProxy proxy{url, {}, {}};
  const auto answer = ask_admin(
      url, {.target = "/api/v1/pools", .token = options.token, .deadline = options.timeout});
  if (!answer)
    proxy.error = answer.error().message;
  else if (auto pools = fleet_pools(*answer); pools)
    proxy.pools = *std::move(pools);
  else
    proxy.error = no_proxy(url, pools.error().message).message;
  return proxy;
}

// Each proxy has its own deadline, so a dead one holds up no other.
std::vector<FleetProxy> ask_all(const FleetOptions& options) {
  std::vector<FleetProxy> proxies(options.urls.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < proxies.size(); i = next++)
      proxies[i] = ask(options.urls[i], options);
  };
  std::vector<std::jthread> threads(std::min(kAtOnce, proxies.size()));
  std::ranges::generate(threads, [&] { return std::jthread(work); });
  threads.clear();
  return proxies;
}

}  // namespace

int fleet(const FleetOptions& options) {
  const FleetReport report = compare_fleet(ask_all(options));
  Output output;
  output.append(options.json ? upstream::to_text(to_json(report)) + "\n" : fleet_text(report));
  const auto done = output.flush();
  if (!done) return complain(kCommand, done.error().message);
  for (const FleetProxy& proxy : report.proxies)
    if (proxy.error) complain(kCommand, *proxy.error);
  if (!report.complete()) return kError;
  return report.agree() ? kOk : kRefused;
}

}  // namespace clockwise::cli
