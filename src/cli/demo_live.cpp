// The demo for a person: a table that is drawn anew twice a second, and below the words for what an
// edit of the list of servers moved.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>

#include "cli/cli.h"
#include "cli/demo_stage.h"
#include "cli/figures.h"

namespace clockwise::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFrame = 500ms;
constexpr std::size_t kWindow = 10;  // frames: load is shown over the last five seconds
constexpr unsigned kRequestsPerSecond = 400;

// Requests by server at the last few frames.
class LoadWindow {
 public:
  // Sets each server's part of the requests since the oldest frame kept.
  void apply(std::vector<DemoServer>& servers) {
    std::map<std::string, std::uint64_t> now;
    for (const DemoServer& server : servers) now[server.name] = server.requests;
    frames_.push_back(now);
    if (frames_.size() > kWindow) frames_.pop_front();

    double total = 0;
    for (DemoServer& server : servers) {
      const auto then = frames_.front().find(server.name);
      const auto before = then == frames_.front().end() ? 0 : then->second;
      server.load = static_cast<double>(server.requests - before);
      total += server.load;
    }
    for (DemoServer& server : servers) server.load = total > 0 ? server.load / total : 0;
  }

 private:
  std::deque<std::map<std::string, std::uint64_t>> frames_;
};

// The part of the terminal that is drawn over itself.
class Screen {
 public:
  Screen() { fmt::print("\x1b[?25l\x1b[?7l"); }  // no cursor, no wrapped lines
  ~Screen() { fmt::print("\x1b[?25h\x1b[?7h"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::string& frame) {
    erase();
    fmt::print("{}", frame);
    for (const char c : frame) lines_ += c == '\n';
    std::fflush(stdout);
  }
  // A line that stays, above the frame.
  void tell(const std::string& line) {
    erase();
    fmt::print("{}\n", line);
  }

 private:
  void erase() {
    if (lines_ > 0) fmt::print("\x1b[{}A\x1b[J", lines_);
    lines_ = 0;
  }
  int lines_ = 0;
};

void introduce(const DemoStage& stage) {
  fmt::print(
      "\nA ring of servers behind http://127.0.0.1:{0}; {1} requests a second over {2} keys.\n\n"
      "  Edit    {3}\n"
      "          add a server, change a weight, take one out, and save: this view tells what "
      "moved.\n"
      "  Try     curl http://127.0.0.1:{0}/any/path\n"
      "  Scrape  http://127.0.0.1:{4}/metrics\n"
      "  Stop    Ctrl-C\n\n",
      stage.ports().proxy, kRequestsPerSecond, grouped(DemoTraffic::kKeys),
      stage.upstreams().string(), stage.ports().admin);
}

class Show {
 public:
  explicit Show(DemoStage& stage) : stage_(stage) {}

  Result<void> frame() {
    auto servers = stage_.servers();
    if (!servers) return servers.error();
    load_.apply(*servers);
    tell_news();
    const DemoTraffic& traffic = stage_.traffic();
    screen_.draw(fmt::format("\n{}\n  {} requests, {} failed\n", server_table(*servers, true),
                             grouped(traffic.answered()), grouped(traffic.failed())));
    return {};
  }

 private:
  void tell_news() {
    const std::uint64_t failed = stage_.traffic().failed();
    if (const auto remaps = stage_.new_remaps())
      for (const auto& remap : *remaps) {
        screen_.tell(fmt::format("{}, {} requests failed", remap_in_words(remap),
                                 grouped(failed - failed_before_)));
        failed_before_ = failed;
      }
    if (const auto refusal = stage_.new_refusal()) screen_.tell(*refusal);
  }

  DemoStage& stage_;
  LoadWindow load_;
  Screen screen_;
  std::uint64_t failed_before_ = 0;
};

int complain(const Error& error) {
  fmt::print(stderr, "clockwise demo: {}\n", error.message);
  return kError;
}

// Until Ctrl-C, or until the proxy is gone.
Result<void> play(DemoStage& stage, StopSignals& stop) {
  Show show(stage);
  while (!stop.within(kFrame)) {
    if (!stage.proxy().running()) return fail("the proxy ended: " + stage.proxy().last_words());
    if (const auto shown = show.frame(); !shown) return shown.error();
  }
  return {};
}

}  // namespace

int demo_live() {
  StopSignals stop;
  DemoStage stage(kRequestsPerSecond);
  if (const auto opened = stage.open(); !opened) return complain(opened.error());
  introduce(stage);
  if (const auto played = play(stage, stop); !played) return complain(played.error());
  const DemoTraffic& traffic = stage.traffic();
  fmt::print("\nStopped after {} requests, {} failed.\n", grouped(traffic.answered()),
             grouped(traffic.failed()));
  return kOk;
}

}  // namespace clockwise::cli
