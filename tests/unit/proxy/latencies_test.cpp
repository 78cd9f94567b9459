#include "proxy/latencies.h"

#include <gtest/gtest.h>

namespace clockwise::proxy {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

void add(Latencies& latencies, int times, nanoseconds latency) {
  for (int i = 0; i < times; ++i) latencies.add(static_cast<std::uint64_t>(latency.count()));
}

void expect_about(nanoseconds found, nanoseconds wanted) {
  EXPECT_GE(found, wanted);
  EXPECT_LE(found, wanted + wanted / 4);
}

TEST(Latencies, HaveNoOpinionOfFewAnswers) {
  Latencies latencies;
  add(latencies, Latencies::kLeast - 1, 5ms);
  EXPECT_EQ(latencies.quantile(0.95), 0ns);
  add(latencies, 1, 5ms);
  expect_about(latencies.quantile(0.95), 5ms);
}

TEST(Latencies, TellQuantiles) {
  Latencies latencies;
  add(latencies, 90, 2ms);
  add(latencies, 8, 30ms);
  add(latencies, 2, 700ms);
  expect_about(latencies.quantile(0.5), 2ms);
  expect_about(latencies.quantile(0.9), 2ms);
  expect_about(latencies.quantile(0.95), 30ms);
  expect_about(latencies.quantile(0.99), 700ms);
}

TEST(Latencies, AreNeverTooShortByTheirBuckets) {
  for (nanoseconds latency = 70us; latency < 100s; latency += latency / 7) {
    Latencies latencies;
    add(latencies, 100, latency);
    expect_about(latencies.quantile(0.95), latency);
  }
}

TEST(Latencies, TakeTheShortestAndTheLongest) {
  Latencies latencies;
  add(latencies, 100, 0ns);
  EXPECT_LE(latencies.quantile(0.95), 66us);
  add(latencies, 100'000, 24h);
  EXPECT_GE(latencies.quantile(0.95), 100s);
}

TEST(Latencies, ForgetWhatWasLongAgo) {
  Latencies latencies;
  add(latencies, 100'000, 500ms);
  add(latencies, 2 * Latencies::kKept, 1ms);
  expect_about(latencies.quantile(0.5), 1ms);
  add(latencies, 8 * Latencies::kKept, 1ms);
  expect_about(latencies.quantile(0.99), 1ms);
}

TEST(Latencies, FollowTheNewest) {
  Latencies latencies;
  add(latencies, 1000, 1ms);
  expect_about(latencies.quantile(0.95), 1ms);
  add(latencies, 1000, 50ms);
  expect_about(latencies.quantile(0.95), 50ms);
}

}  // namespace
}  // namespace clockwise::proxy
