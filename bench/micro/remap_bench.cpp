// What it costs to compare two rings of 1024 points a server, exactly, and by the estimate that
// stands in where no exact way exists.
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ring/remap.h"
#include "ring/scheme.h"

namespace clockwise::ring {
namespace {

struct Side {
  std::vector<std::string> names;
  std::shared_ptr<const Ring> ring;

  Side(const Scheme& scheme, std::size_t count, const std::function<Member(std::string)>& member) {
    std::vector<Member> members;
    for (std::size_t i = 0; i < count; ++i) {
      members.push_back(member("cache-" + std::to_string(i)));
      names.push_back(members.back().label);
    }
    ring = build(scheme, members).value();
  }
  operator RingView() const { return {ring.get(), names}; }
};

const Scheme kClockwise{.points = 1024};

Member as_it_is(std::string name) { return {std::move(name)}; }
Member renamed(std::string name) { return {name + "-new"}; }
Member reweighted(std::string name) { return {std::move(name), 1.5}; }

void run(benchmark::State& state, const Side& before, const Side& after) {
  for (auto _ : state) benchmark::DoNotOptimize(compare(before, after));
}

std::size_t servers(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void one_added(benchmark::State& state) {
  run(state, Side(kClockwise, servers(state), as_it_is),
      Side(kClockwise, servers(state) + 1, as_it_is));
}
BENCHMARK(one_added)->Arg(4)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// Half of what was there stays, the rest goes to whoever has a new point before it.
void all_reweighted(benchmark::State& state) {
  run(state, Side(kClockwise, servers(state), as_it_is),
      Side(kClockwise, servers(state), reweighted));
}
BENCHMARK(all_reweighted)->Arg(4)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// Each arc moves, and there are as many pairs of servers as there can be.
void all_renamed(benchmark::State& state) {
  run(state, Side(kClockwise, servers(state), as_it_is), Side(kClockwise, servers(state), renamed));
}
BENCHMARK(all_renamed)->Arg(4)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// Another hash tag: the positions of a key say nothing of each other.
void sampled(benchmark::State& state) {
  Scheme tagged = kClockwise;
  tagged.hash_tag = "{}";
  run(state, Side(kClockwise, servers(state), as_it_is), Side(tagged, servers(state), as_it_is));
}
BENCHMARK(sampled)->Arg(4)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clockwise::ring
