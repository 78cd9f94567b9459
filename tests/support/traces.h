// Requests as caches see them, and what the published algorithm makes of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <random>
#include <unordered_map>
#include <vector>

namespace clockwise::cache::test {

using Trace = std::vector<std::uint64_t>;  // keys

// Requests for `keys` objects whose popularity falls as 1 / rank^alpha.
inline Trace zipf(std::size_t keys, double alpha, std::size_t requests, bool with_scans) {
  std::vector<double> sums(keys);
  double sum = 0;
  for (std::size_t i = 0; i < keys; ++i)
    sums[i] = sum += 1 / std::pow(static_cast<double>(i + 1), alpha);
  std::mt19937_64 random(42);
  Trace trace;
  std::uint64_t next_scanned = 1ULL << 40;
  while (trace.size() < requests) {
    const double at = std::uniform_real_distribution<>(0, sum)(random);
    trace.push_back(static_cast<std::uint64_t>(std::ranges::lower_bound(sums, at) - sums.begin()));
    // Now and then somebody walks through what nobody asks for again.
    if (with_scans && trace.size() % 20'000 == 0)
      for (int i = 0; i < 2'000; ++i) trace.push_back(next_scanned++);
  }
  return trace;
}

// S3-FIFO in the plainest form, with an exact ghost, for objects that weigh `size_of(key)` each;
// `hit(key)` is called for each hit. `ghosts`: how many keys are remembered.
template <class SizeOf, class Hit>
void reference_s3_fifo(const Trace& trace, std::uint64_t room, std::size_t ghosts, SizeOf size_of,
                       Hit hit) {
  struct Queue {
    std::list<std::uint64_t> keys;  // newest first
    std::uint64_t weight = 0;
  };
  const std::uint64_t small_room = std::max<std::uint64_t>(room / 10, 1);
  Queue small, main;
  std::list<std::uint64_t> ghost;
  std::unordered_map<std::uint64_t, int> count;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> in_ghost;
  const auto push = [&](Queue& queue, std::uint64_t key) {
    queue.keys.push_front(key);
    queue.weight += size_of(key);
  };
  const auto pop = [&](Queue& queue) {
    const std::uint64_t out = queue.keys.back();
    queue.keys.pop_back();
    queue.weight -= size_of(out);
    return out;
  };
  const auto evict_from_small = [&] {
    const std::uint64_t out = pop(small);
    if (count[out] > 0) {
      count[out] = 0;
      push(main, out);
      return;
    }
    count.erase(out);
    ghost.push_front(out);
    in_ghost[out] = ghost.begin();
    if (ghost.size() <= ghosts) return;
    in_ghost.erase(ghost.back());
    ghost.pop_back();
  };
  const auto evict_from_main = [&] {
    const std::uint64_t out = pop(main);
    if (count[out] > 0) {
      --count[out];
      push(main, out);
    } else {
      count.erase(out);
    }
  };
  for (const std::uint64_t key : trace) {
    if (const auto found = count.find(key); found != count.end()) {
      found->second = std::min(found->second + 1, 3);
      hit(key);
      continue;
    }
    const auto remembered = in_ghost.find(key);
    push(remembered != in_ghost.end() ? main : small, key);
    if (remembered != in_ghost.end()) {
      ghost.erase(remembered->second);
      in_ghost.erase(remembered);
    }
    count[key] = 0;
    while (small.weight + main.weight > room) {
      if (small.weight > small_room || main.keys.empty())
        evict_from_small();
      else
        evict_from_main();
    }
  }
}

// Its hit ratio for `room` objects of one size.
inline double reference_s3_fifo(const Trace& trace, std::size_t room) {
  std::size_t hits = 0;
  reference_s3_fifo(
      trace, room, room, [](std::uint64_t) { return 1; }, [&](std::uint64_t) { ++hits; });
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

}  // namespace clockwise::cache::test
