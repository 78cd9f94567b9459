// The demo without a person: a fixed scenario that edits the list itself and holds every answer
// against the ring. Exit code 0 means that no request failed, that each one was answered by the
// server that owns its key, and that each change moved exactly what the two rings say.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "cli/cli.h"
#include "cli/demo_stage.h"
#include "cli/figures.h"
#include "config/load.h"
#include "upstream/plan.h"

namespace clockwise::cli {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kRequestsPerSecond = 2000;
constexpr std::uint64_t kRequestsPerStep = 2000;
constexpr std::uint64_t kInFlight = 200;  // answers after which none from before a change is left
constexpr auto kPatience = 30s;
constexpr double kExact = 1e-9;

// A pool as the files describe it, with the ring that they make.
struct Expected {
  config::Pool pool = {};
  std::shared_ptr<const ring::Ring> ring;

  [[nodiscard]] const std::string& owner(const std::string& key) const {
    return pool.servers[ring->owner(ring->hash(key))].name;
  }
  [[nodiscard]] upstream::Side side() const { return {&pool, ring.get()}; }
};

Result<Expected> expected(const DemoStage& stage) {
  const auto loaded = config::load(stage.configuration().string(), config::real_files(),
                                   config::real_environment());
  if (const auto* failure = std::get_if<config::Failure>(&loaded))
    return fail(failure->problems.front().headline());
  const config::Pool& pool = *std::get<config::Loaded>(loaded).config.pool(stage.pool());
  auto ring = upstream::build_ring(pool);
  if (!ring) return ring.error();
  return Expected{pool, *ring};
}

class Scenario {
 public:
  Scenario(DemoStage& stage, StopSignals& stop) : stage_(stage), stop_(stop) {}

  Result<void> play() {
    auto start = expected(stage_);
    if (!start) return start.error();
    now_ = std::move(*start);
    std::vector<std::string> names;
    for (const config::Server& server : now_.pool.servers) names.push_back(server.name);

    introduce();
    if (const auto sent = send_requests(); !sent) return sent;
    const std::string list = read_text(stage_.upstreams());
    const std::string added = next_name(names);
    const std::string grown = with_comment_removed(list, added);
    if (const auto done = change(fmt::format("add {}", added), grown); !done) return done;
    const std::string heavier = with_weight(grown, names.front(), "3");
    if (const auto done = change(fmt::format("weight of {}: 3", names.front()), heavier); !done)
      return done;
    const std::string smaller = without(heavier, names.at(1));
    return change(fmt::format("remove {}", names.at(1)), smaller);
  }

 private:
  void introduce() {
    fmt::print(
        "A ring of servers behind http://127.0.0.1:{}, {} requests a second over {} keys.\n"
        "The list of servers is {}; metrics: http://127.0.0.1:{}/metrics\n\n",
        stage_.ports().proxy, grouped(kRequestsPerSecond), grouped(DemoTraffic::kKeys),
        stage_.upstreams().string(), stage_.ports().admin);
    std::fflush(stdout);
  }

  // Saves `list`, waits for the change of the ring, and shows what it did.
  Result<void> change(const std::string& edit, const std::string& list) {
    fmt::print("Edit: {}\n", edit);
    if (const auto saved = save(stage_.upstreams(), list); !saved) return saved;
    auto next = expected(stage_);
    if (!next) return next.error();
    auto remap = wait_for_remap();
    if (!remap) return remap.error();
    const auto report = upstream::plan(now_.side(), next->side());
    now_ = std::move(*next);
    if (const auto same = compare(*remap, report); !same) return same;
    if (const auto sent = send_requests(); !sent) return sent;
    return {};
  }

  Result<boost::json::object> wait_for_remap() {
    const std::uint64_t failed = stage_.traffic().failed();
    std::vector<boost::json::object> found;
    const auto waited = wait("the change of the ring", [&] {
      if (auto remaps = stage_.new_remaps()) found = std::move(*remaps);
      return !found.empty();
    });
    if (!waited) {
      const auto refusal = stage_.new_refusal();
      return refusal ? fail(*refusal) : waited.error();
    }
    fmt::print("  {}, {} requests failed\n", remap_in_words(found.back()),
               grouped(stage_.traffic().failed() - failed));
    return found.back();
  }

  // The account that the proxy gives, against the one made here from the files.
  static Result<void> compare(const boost::json::object& told, const upstream::Report& report) {
    const double moved = told.at("moved_ratio").to_number<double>();
    const double needless = told.at("needless_ratio").to_number<double>();
    if (std::abs(moved - report.moved_ratio) < kExact && needless == 0) return {};
    return fail(fmt::format("the proxy moved {} of the keys ({} needlessly), the files say {}",
                            moved, needless, report.moved_ratio));
  }

  Result<void> send_requests() {
    if (const auto settled = wait_for_answers(kInFlight); !settled) return settled;
    static_cast<void>(stage_.traffic().take_owners());  // those from before the change
    const auto before = stage_.servers();
    if (!before) return before.error();
    if (const auto sent = wait_for_answers(kRequestsPerStep); !sent) return sent;
    auto servers = stage_.servers();
    if (!servers) return servers.error();
    show(*before, std::move(*servers));
    return check_owners();
  }

  static void show(const std::vector<DemoServer>& before, std::vector<DemoServer> servers) {
    double total = 0;
    for (DemoServer& server : servers) {
      server.load = static_cast<double>(server.requests);
      for (const DemoServer& earlier : before)
        if (earlier.name == server.name) server.load -= static_cast<double>(earlier.requests);
      total += server.load;
    }
    for (DemoServer& server : servers) server.load /= total;
    fmt::print("{}\n", server_table(servers, false));
    std::fflush(stdout);
  }

  // Every answer came from the owner of its key.
  Result<void> check_owners() {
    const DemoTraffic::Owners owners = stage_.traffic().take_owners();
    unsigned seen = 0, wrong = 0;
    for (unsigned number = 0; number < DemoTraffic::kKeys; ++number) {
      if (owners[number].empty()) continue;
      ++seen;
      if (owners[number] != now_.owner(DemoTraffic::key(number))) ++wrong;
    }
    if (wrong == 0 && seen > 0) return {};
    return fail(fmt::format("{} of {} keys were not answered by their owner", wrong, seen));
  }

  Result<void> wait_for_answers(std::uint64_t more) {
    const std::uint64_t goal = stage_.traffic().answered() + more;
    return wait(fmt::format("{} answers", more),
                [&] { return stage_.traffic().answered() >= goal; });
  }

  template <class Condition>
  Result<void> wait(const std::string& what, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (stop_.within(20ms)) return fail("stopped");
      if (!stage_.proxy().running()) return fail("the proxy ended: " + stage_.proxy().last_words());
      if (std::chrono::steady_clock::now() > deadline)
        return fail(fmt::format("waited in vain for {}", what));
    }
    return {};
  }

  DemoStage& stage_;
  StopSignals& stop_;
  Expected now_;  // what the files say
};

}  // namespace

int demo_once() {
  StopSignals stop;
  DemoStage stage(kRequestsPerSecond);
  auto result = stage.open();
  if (result) result = Scenario(stage, stop).play();
  const std::uint64_t failed = stage.traffic().failed();
  if (!result) fmt::print(stderr, "clockwise demo: {}\n", result.error().message);
  if (!result || failed > 0) {
    fmt::print(stderr, "clockwise demo: {} requests failed\n", failed);
    return kError;
  }
  fmt::print("{} requests, 0 failed; every one was answered by the owner of its key.\n",
             grouped(stage.traffic().answered()));
  return kOk;
}

}  // namespace clockwise::cli
