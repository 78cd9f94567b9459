#include "config/load.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "config/caches.h"
#include "config/digest.h"
#include "config/listeners.h"
#include "config/parsed.h"
#include "config/pools.h"
#include "config/upstream_files.h"
#include "config/yaml.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMaxWorkers = 1'024;

constexpr std::array<Choice<LogFormat>, 2> kLogFormats{
    {{"json", LogFormat::json}, {"combined", LogFormat::combined}}};
constexpr std::array<Choice<PerBackend>, 3> kPerBackend{
    {{"full", PerBackend::full}, {"basic", PerBackend::basic}, {"off", PerBackend::off}}};

// The cores this process may run on: fewer than the machine has in a pinned container.
std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::clamp(cores, 1, static_cast<int>(kMaxWorkers)));
}

void read_workers(const Field& field, std::uint32_t& workers) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar || scalar->text == "auto") return;
  if (!parse_integer(scalar->text, 1, kMaxWorkers))
    field.error(fmt::format("is not a whole number from 1 to {}, or auto", kMaxWorkers));
  else
    integer(workers, 1, kMaxWorkers)(field);
}

void read_admin(const Field& field, Admin& admin) {
  MapReader map(field);
  map.read("address", address(admin.address, PortRule::listening));
  map.read("token", text(admin.token, Empty::allowed));
  map.finish();
}

void read_log_file(const Field& field, const UpstreamFiles& files, std::string& file) {
  read_text(field, file, Empty::refused);
  if (file != "stderr" && file != "stdout") file = files.resolve(file);
}

void read_access_log(const Field& field, const UpstreamFiles& files,
                     std::optional<AccessLog>& log) {
  if (is_off(field)) {
    log.reset();
    return;
  }
  MapReader map(field);
  map.read("file", [&](const Field& f) { read_log_file(f, files, log->file); });
  map.read("format", choice(log->format, kLogFormats));
  map.read("sample", share(log->sample));
  map.finish();
}

void read_metrics(const Field& field, Metrics& metrics) {
  MapReader map(field);
  map.read("per_backend", choice(metrics.per_backend, kPerBackend));
  map.read("removed_grace", duration(metrics.removed_grace, 0ms));
  map.read("max_series", integer(metrics.max_series, 1'000, 10'000'000));
  map.finish();
}

// `user` or `user:group`; whether the machine knows them is found out at the start.
void read_user(const Field& field, std::string& user) {
  std::string text;
  read_text(field, text, Empty::allowed);
  const auto name = [](std::string_view part) {
    return !part.empty() && part.size() <= 32 &&
           part.find_first_of(": \t/\\") == std::string_view::npos;
  };
  const std::size_t colon = text.find(':');
  const bool valid = name(std::string_view(text).substr(0, colon)) &&
                     (colon == std::string::npos || name(std::string_view(text).substr(colon + 1)));
  if (!text.empty() && !valid) return field.error("is not user or user:group");
  user = text;
}

void read_memory(const Field& field, Overload& overload) {
  if (is_off(field)) {
    overload.memory = Overload::Memory::off;
    return;
  }
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  const auto bytes = parse_size(scalar->text, 16ULL << 20, 1ULL << 50);
  if (scalar->text == "auto")
    overload.memory = Overload::Memory::automatic;
  else if (!bytes)
    field.error(bytes.error().message + ", auto or off");
  else
    overload = {Overload::Memory::fixed, *bytes};
}

void read_overload(const Field& field, Overload& overload) {
  MapReader map(field);
  map.read("memory", [&](const Field& f) { read_memory(f, overload); });
  map.finish();
}

void read_state_dir(const Field& field, const UpstreamFiles& files, std::string& folder) {
  read_text(field, folder, Empty::allowed);
  if (!folder.empty()) folder = files.resolve(folder);
}

// A pool or cache that is written wrongly still has a name; who uses it is not at fault.
template <class Named>
std::vector<std::string_view> names_of(const std::vector<Named>& all) {
  std::vector<std::string_view> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

Config read_config(const Field& root, UpstreamFiles& files) {
  Config config;
  config.workers = usable_cores();
  MapReader map(root);
  map.read("workers", [&](const Field& f) { read_workers(f, config.workers); });
  map.read("shutdown_timeout", duration(config.shutdown_timeout, 0ms));
  map.read("user", [&](const Field& f) { read_user(f, config.user); });
  map.read("overload", [&](const Field& f) { read_overload(f, config.overload); });
  map.read("admin", [&](const Field& f) { read_admin(f, config.admin); });
  std::optional<Field> caches;
  map.read("caches", [&](const Field& f) {
    caches = f;
    config.caches = read_caches(f);
  });
  map.require("pools", [&](const Field& f) {
    config.pools = read_pools(f, files, names_of(config.caches));
  });
  map.require("listeners", [&](const Field& f) {
    config.listeners =
        read_listeners(f, config.pools, names_of(config.caches), config.admin.address);
  });
  map.read("access_log", [&](const Field& f) { read_access_log(f, files, config.access_log); });
  map.read("metrics", [&](const Field& f) { read_metrics(f, config.metrics); });
  map.read("state_dir", [&](const Field& f) { read_state_dir(f, files, config.state_dir); });
  map.finish();
  add_fill_caches(config);
  if (caches) check_pools_of_caches(*caches, config);
  if (caches) warn_of_unused_caches(*caches, config);
  return config;
}

Failure unreadable(const std::string& path, std::string reason) {
  Problem problem;
  problem.position.file = path;
  problem.message = "cannot be read: " + std::move(reason);
  return {FailureCode::unreadable, {std::move(problem)}};
}

}  // namespace

LoadResult load(const std::string& path, const FileReader& read, const Environment& environment,
                Warnings warnings) {
  const std::variant<std::string, std::string> text = read(path);
  if (text.index() == 1) return unreadable(path, std::get<1>(text));

  Report report;
  UpstreamFiles upstream(path, read);
  Loaded loaded;
  const auto parsed = Parsed::parse(path, std::get<0>(text), report, environment);
  if (parsed != nullptr) loaded.config = read_config(parsed->root(), upstream);
  if (report.failed()) return report.take_failure();

  loaded.files = {path};
  if (warnings == Warnings::wanted) loaded.warnings = report.take_warnings();
  Digest digest;
  digest.add(std::get<0>(text));
  for (const UpstreamFiles::File& file : upstream.files()) {
    digest.add(file.text);
    loaded.files.push_back(file.path);
  }
  loaded.digest = digest.hex().substr(0, 12);
  return loaded;
}

std::variant<std::vector<Server>, Failure> load_servers(const std::string& name,
                                                        const std::string& text, const Pool& pool,
                                                        const Environment& environment) {
  Report report;
  WrittenRing ring;
  ring.ring = pool.ring;
  ring.facts = &ring::facts(pool.ring.scheme.placement);
  ring.may_own_nothing = pool.fallback.has_value();
  std::vector<Server> servers;
  const auto parsed = Parsed::parse(name, text, report, environment);
  if (parsed != nullptr) servers = read_upstream(parsed->root(), ring);
  if (report.failed()) return report.take_failure();
  return servers;
}

bool is_full_configuration(const std::string& text) {
  const auto decoded = Source::decode("", text);
  if (decoded.index() == 1) return false;
  Report ignored;
  const std::optional<Document> document = parse_yaml(std::get<0>(decoded), ignored);
  if (!document) {  // not even YAML: guess, so that the right rules report what is wrong
    const std::string lines = "\n" + text;
    return lines.find("\npools:") != std::string::npos ||
           lines.find("\nlisteners:") != std::string::npos;
  }
  const std::vector<Entry>& entries = document->root->entries;
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "pools" || entry.key == "listeners";
  });
}

}  // namespace clockwise::config
