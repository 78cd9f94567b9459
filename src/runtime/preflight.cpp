#include "runtime/preflight.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "config/locate.h"
#include "proxy/access_log.h"
#include "runtime/state_dir.h"

namespace clockwise::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 5s;

std::string does_not_resolve(const std::string& address) {
  return fmt::format("\"{}\" does not resolve", address);
}

// Where the proxy listens, and the way to it in the file.
struct Listening {
  const config::Address& address;
  config::Steps steps;
  std::string path;
};

std::vector<Listening> listening(const config::Config& config) {
  std::vector<Listening> all{{config.admin.address, {"admin", "address"}, "admin.address"}};
  for (std::size_t i = 0; i < config.listeners.size(); ++i)
    all.push_back({config.listeners[i].address,
                   {"listeners", i, "address"},
                   fmt::format("listeners[{}].address", i)});
  return all;
}

}  // namespace

std::vector<config::Problem> fatal_names(const std::string& file, const config::Config& config,
                                         const Places& places, const config::FileReader& read) {
  std::vector<config::Problem> problems;
  for (const Places::Unresolved& lost : places.unresolved)
    if (lost.fatal)
      problems.push_back(config::problem_at_address(file, *config.pool(lost.pool), lost.index,
                                                    does_not_resolve(lost.address), read));
  return problems;
}

std::vector<config::Problem> preflight(const std::string& file, const config::Config& config,
                                       const config::FileReader& read, const Lookup& lookup) {
  const std::vector<Listening> own = listening(config);
  std::set<std::string> names = host_names(config);
  for (const Listening& one : own)
    if (auto name = host_name(one.address)) names.insert(std::move(*name));
  const HostAddresses hosts = names.empty() ? HostAddresses{} : lookup(names, kPatience);

  std::vector<config::Problem> problems =
      fatal_names(file, config, place_servers(config, hosts, nullptr), read);
  for (const Listening& one : own)
    if (endpoints(one.address, hosts).empty())
      problems.push_back(config::problem_at(
          file, one.steps, one.path + ": " + does_not_resolve(one.address.text), read));
  if (!config.state_dir.empty())
    if (const auto usable = check_state_dir(config.state_dir); !usable)
      problems.push_back(config::problem_at(file, {"state_dir"}, usable.error().message, read));
  if (!config.access_log) return problems;
  if (const auto writable = proxy::AccessLog::check(*config.access_log); !writable)
    problems.push_back(
        config::problem_at(file, {"access_log", "file"}, writable.error().message, read));
  return problems;
}

}  // namespace clockwise::runtime
