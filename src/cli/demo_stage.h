// The stage of the demo: its files, its servers, the proxy in front and the clients, in one place.
//
// Everything is set up by open() and taken down by the destructor, in the order that fails no
// request.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/demo_files.h"
#include "cli/demo_origins.h"
#include "cli/demo_proxy.h"
#include "cli/demo_traffic.h"
#include "cli/demo_view.h"

namespace clockwise::cli {

// Ctrl-C and its kin, asked for instead of suffered. Make it before any thread: they inherit the
// mask.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Waits that long; true when the demo is asked to stop, at once and from then on.
  bool within(std::chrono::milliseconds time);

 private:
  sigset_t signals_{}, before_{};
  bool asked_ = false;
};

class DemoStage {
 public:
  explicit DemoStage(unsigned requests_per_second);
  ~DemoStage();
  DemoStage(const DemoStage&) = delete;
  DemoStage& operator=(const DemoStage&) = delete;

  [[nodiscard]] Result<void> open();

  [[nodiscard]] std::filesystem::path configuration() const { return folder_ / "clockwise.yaml"; }
  [[nodiscard]] std::filesystem::path upstreams() const { return folder_ / "upstreams.yaml"; }
  [[nodiscard]] const DemoPorts& ports() const noexcept { return ports_; }
  [[nodiscard]] DemoTraffic& traffic() noexcept { return *traffic_; }
  [[nodiscard]] DemoProxy& proxy() noexcept { return *proxy_; }
  [[nodiscard]] const std::string& pool() const noexcept { return pool_; }

  // As the admin API tells it, with the requests that each server counted itself.
  [[nodiscard]] Result<std::vector<DemoServer>> servers() const;
  // Changes of the ring since the last call, oldest first.
  [[nodiscard]] Result<std::vector<boost::json::object>> new_remaps();
  // Why the newest reload changed nothing, once for each that failed.
  [[nodiscard]] std::optional<std::string> new_refusal();

 private:
  Result<void> write_files();

  std::filesystem::path folder_;
  bool temporary_ = false;
  DemoPorts ports_;
  std::string pool_;
  std::uint64_t last_remap_ = 0;
  std::string last_refusal_;  // its time
  DemoOrigins origins_;
  std::unique_ptr<DemoProxy> proxy_;
  std::unique_ptr<DemoTraffic> traffic_;  // ends first
};

// Writes beside the file and renames, so that no reader sees half a list.
[[nodiscard]] Result<void> save(const std::filesystem::path& file, const std::string& text);
[[nodiscard]] std::string read_text(const std::filesystem::path& file);

// The two shows.
int demo_live();
int demo_once();

}  // namespace clockwise::cli
