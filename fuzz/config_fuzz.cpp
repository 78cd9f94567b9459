// Any bytes as a main file, an upstream file and an environment: no crash, no hang, and the
// promises of config/load.h hold for what is accepted and for what is refused.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/load.h"

namespace {

using namespace clockwise::config;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Failure& failure) {
  require(!failure.problems.empty());
  for (const Problem& problem : failure.problems) {
    require(!problem.message.empty());
    require(!problem.text().empty());
    require((problem.position.line == 0) == problem.source.empty());
    require(problem.position.line == 0 || problem.position.column > 0);
    require(problem.message.find('\n') == std::string::npos);
    require(problem.text().find('\x1b') == std::string::npos);
  }
}

void check(const Loaded& loaded) {
  require(loaded.digest.size() == 12);
  require(!loaded.config.listeners.empty() && !loaded.config.pools.empty());
  for (const Listener& listener : loaded.config.listeners)
    require(loaded.config.pool(listener.pool) != nullptr);
  for (const Pool& pool : loaded.config.pools) {
    bool weighted = pool.fallback.has_value();  // where no server takes keys
    for (const Server& server : pool.servers) {
      require(!server.name.empty() && !server.address.text.empty());
      require(server.weight >= 0 && server.weight <= 10'000);
      weighted |= server.weight > 0;
    }
    require(weighted);
    require(pool.max_remap >= 0 && pool.max_remap <= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const FileReader read = [&](const std::string&) {
    return std::variant<std::string, std::string>(std::in_place_index<0>, text);
  };
  const Environment environment = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "ALL") return text;
    return name.size() % 2 == 0 ? std::optional<std::string>("1") : std::nullopt;
  };
  std::visit([](const auto& result) { check(result); }, load("fuzz.yaml", read, environment));
  const auto servers = load_servers("fuzz.yaml", text, Pool(), environment);
  if (const auto* failure = std::get_if<Failure>(&servers)) check(*failure);
  (void)is_full_configuration(text);
  return 0;
}
