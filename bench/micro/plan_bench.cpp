// What a plan costs once the files are parsed: both rings, the report on them, its JSON.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <string_view>

#include "upstream/key_count.h"
#include "upstream/plan.h"
#include "upstream/report_text.h"

namespace clockwise::upstream {
namespace {

config::Pool pool_of(std::size_t servers, std::string_view prefix, double weight = 1) {
  config::Pool pool;
  pool.name = "pages";
  for (std::size_t i = 0; i < servers; ++i) {
    config::Server server;
    server.name = std::string(prefix) + std::to_string(i);
    server.weight = weight;
    pool.servers.push_back(std::move(server));
  }
  return pool;
}

// One change of a thousand servers: 0 one added, 1 all reweighted, 2 all renamed.
struct Change {
  config::Pool before, after;
  std::shared_ptr<const ring::Ring> ring_before, ring_after;

  explicit Change(std::int64_t kind)
      : before(pool_of(1000, "cache-")),
        after(kind == 0   ? pool_of(1001, "cache-")
              : kind == 1 ? pool_of(1000, "cache-", 1.5)
                          : pool_of(1000, "new-")),
        ring_before(build_ring(before).value()),
        ring_after(build_ring(after).value()) {}

  Report report() const { return plan({&before, ring_before.get()}, {&after, ring_after.get()}); }
};

void one_ring(benchmark::State& state) {
  const config::Pool pool = pool_of(1000, "cache-");
  for (auto _ : state) benchmark::DoNotOptimize(build_ring(pool).value());
}
BENCHMARK(one_ring)->Unit(benchmark::kMillisecond);

void report(benchmark::State& state) {
  const Change change(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(change.report());
}
BENCHMARK(report)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

void json_text(benchmark::State& state) {
  const Report report = Change(state.range(0)).report();
  std::size_t size = 0;
  for (auto _ : state) write_json(report, [&](std::string_view text) { size += text.size(); });
  state.SetBytesProcessed(static_cast<std::int64_t>(size));
}
BENCHMARK(json_text)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

// Hash and both look-ups.
void one_key(benchmark::State& state) {
  const Change change(state.range(0));
  KeyCounter counter({&change.before, change.ring_before.get()},
                     {&change.after, change.ring_after.get()});
  std::string key = "/images/catalogue/00000000/thumbnail.webp";
  std::uint32_t number = 0;
  for (auto _ : state) {
    number = number * 1664525 + 1013904223;
    for (int i = 0; i < 8; ++i) key[18 + i] = static_cast<char>('a' + (number >> (4 * i) & 15));
    counter.add(key);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(one_key)->DenseRange(0, 2);

}  // namespace
}  // namespace clockwise::upstream
