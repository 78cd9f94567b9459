// Any text as a configuration of each program: no crash, no hang; what is refused has its place,
// and what is accepted is written as YAML that the loader reads, or refuses for a reason of its
// own.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/prove.h"
#include "import/write.h"

namespace {

using namespace clockwise;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const importer::Problems& problems) {
  require(!problems.empty());
  for (const config::Problem& problem : problems) {
    require(!problem.message.empty());
    require(problem.headline().find('\n') == std::string::npos);
  }
}

// Millions of points are no fault, but they take their time.
bool is_small(const importer::Import& import) {
  double points = 0;
  for (const importer::Pool& pool : import.pools) {
    if (pool.scheme.placement == ring::Placement::envoy) points += pool.scheme.min_size;
    if (pool.scheme.placement == ring::Placement::maglev) points += pool.scheme.table;
    for (const importer::Server& server : pool.servers) points += 1024 * server.weight;
  }
  return points < 200'000;
}

void check(const importer::Import& import) {
  require(!import.pools.empty() && !import.listeners.empty());
  for (const importer::Note& note : import.notes)
    require(!note.message.empty() && note.text().find('\n') == std::string::npos);
  const std::string yaml = importer::to_yaml(import);
  require(std::holds_alternative<config::Source>(config::Source::decode("fuzz.yaml", yaml)));
  if (is_small(import)) (void)importer::prove(import, 2, [](std::uint64_t) {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto format = static_cast<importer::Format>(bytes[0] % importer::format_names().size());
  std::string text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  auto decoded = config::Source::decode("fuzz.conf", text);
  const auto* source = std::get_if<config::Source>(&decoded);
  if (source == nullptr) return 0;
  int includes = 0;
  const auto read = [&](const std::string&) {
    using Contents = std::variant<std::string, std::string>;
    return ++includes <= 2 ? Contents(std::in_place_index<0>, text)
                           : Contents(std::in_place_index<1>, "no such file");
  };
  const auto match = [](const std::string& pattern) {
    return std::vector<std::string>{pattern, "other"};
  };
  std::visit([](const auto& result) { check(result); },
             importer::read(format, *source, {read, match}));
  return 0;
}
