#include "cli/demo_stage.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>

#include "cli/examples.h"

namespace clockwise::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kSpareServers = 2;

// build/demo in a checkout; elsewhere a folder that is removed at the end.
std::pair<fs::path, bool> choose_folder() {
  std::error_code error;
  if (fs::is_directory("build", error) && (fs::create_directories("build/demo", error), !error))
    return {"build/demo", false};
  std::string name = (fs::temp_directory_path() / "clockwise-demo-XXXXXX").string();
  if (!mkdtemp(name.data())) return {};
  return {name, true};
}

// "upstreams.yaml:14:15: MESSAGE", or the message alone where it has no place in a file.
std::string problem(const json::object& error) {
  const std::string message(error.at("message").as_string());
  const json::value* position = error.if_contains("position");
  if (!position || !position->is_object()) return message;
  return fmt::format("{}:{}:{}: {}", std::string_view(position->at("file").as_string()),
                     position->at("line").to_number<int>(), position->at("column").to_number<int>(),
                     message);
}

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignals::~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool StopSignals::within(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  timespec wait{};
  wait.tv_sec = seconds.count();
  wait.tv_nsec = std::chrono::nanoseconds(time - seconds).count();
  if (!asked_) asked_ = sigtimedwait(&signals_, nullptr, &wait) > 0;
  return asked_;
}

DemoStage::DemoStage(unsigned requests_per_second) {
  std::tie(folder_, temporary_) = choose_folder();
  const auto proxy_port = free_port();
  const auto admin_port = free_port();
  if (proxy_port && admin_port) {
    ports_.proxy = *proxy_port;
    ports_.admin = *admin_port;
  }
  traffic_ = std::make_unique<DemoTraffic>(ports_.proxy, requests_per_second);
  proxy_ = std::make_unique<DemoProxy>(configuration(), folder_ / "proxy.log", ports_.admin);
}

DemoStage::~DemoStage() {
  traffic_.reset();
  proxy_.reset();
  std::error_code ignored;
  if (temporary_) fs::remove_all(folder_, ignored);
}

Result<void> DemoStage::open() {
  if (folder_.empty()) return fail("cannot make a folder for the demo");
  if (ports_.proxy == 0) return fail("no free port on 127.0.0.1");
  std::vector<std::string> names = server_names(example_upstreams());
  for (std::size_t i = 0; i < kSpareServers; ++i) names.push_back(next_name(names));
  for (const std::string& name : names)
    if (const auto added = origins_.add(name); !added) return added.error();
  ports_.servers = origins_.ports();
  if (const auto written = write_files(); !written) return written.error();

  origins_.start();
  if (const auto started = proxy_->start(); !started) return started.error();
  const auto pools = get_json(ports_.admin, "/api/v1/pools");
  if (!pools) return pools.error();
  pool_ = pools->at("pools").at(0).at("name").as_string();
  if (const auto none_yet = new_remaps(); !none_yet) return none_yet.error();
  traffic_->start();
  return {};
}

Result<void> DemoStage::write_files() {
  const auto files = demo_files(example_configuration(), example_upstreams(), ports_);
  if (!files) return files.error();
  if (const auto saved = save(upstreams(), files->upstreams); !saved) return saved.error();
  return save(configuration(), files->configuration);
}

Result<std::vector<DemoServer>> DemoStage::servers() const {
  const auto pool = get_json(ports_.admin, "/api/v1/pools/" + pool_);
  if (!pool) return pool.error();
  std::vector<DemoServer> servers;
  for (const json::value& entry : pool->at("servers").as_array()) {
    servers.push_back(server_of(entry.as_object()));
    servers.back().requests = origins_.requests_at(std::string(entry.at("address").as_string()));
  }
  return servers;
}

Result<std::vector<json::object>> DemoStage::new_remaps() {
  const auto history = get_json(ports_.admin, "/api/v1/remaps");
  if (!history) return history.error();
  const json::array& newest_first = history->at("remaps").as_array();
  std::vector<json::object> fresh;
  for (auto remap = newest_first.rbegin(); remap != newest_first.rend(); ++remap) {
    const auto id = remap->at("id").to_number<std::uint64_t>();
    if (id <= last_remap_) continue;
    last_remap_ = id;
    fresh.push_back(remap->as_object());
  }
  return fresh;
}

std::optional<std::string> DemoStage::new_refusal() {
  const auto status = get_json(ports_.admin, "/api/v1/status");
  const json::value* last = status ? status->as_object().if_contains("last_reload") : nullptr;
  if (!last || !last->is_object()) return std::nullopt;
  const std::string result(last->at("result").as_string());
  if (result == "applied" || result == "unchanged") return std::nullopt;
  std::string time(last->at("time").as_string());
  if (time == last_refusal_) return std::nullopt;
  last_refusal_ = std::move(time);

  std::string text = "not applied (" + result + ")";
  if (const json::value* errors = last->as_object().if_contains("errors"))
    for (const json::value& error : errors->as_array()) text += "\n  " + problem(error.as_object());
  return text;
}

Result<void> save(const fs::path& file, const std::string& text) {
  const fs::path beside = file.string() + ".new";
  std::error_code error;
  if (!(std::ofstream(beside, std::ios::trunc) << text << std::flush))
    return fail("cannot write " + beside.string());
  fs::rename(beside, file, error);
  if (error) return fail("cannot write " + file.string() + ": " + error.message());
  return {};
}

std::string read_text(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace clockwise::cli
