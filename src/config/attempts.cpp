#include "config/attempts.h"

#include <fmt/format.h>

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

using Cause = bool RetryOn::*;
constexpr std::array<Choice<Cause>, 6> kCauses{{{"connect", &RetryOn::connect},
                                                {"reset", &RetryOn::reset},
                                                {"timeout", &RetryOn::timeout},
                                                {"502", &RetryOn::s502},
                                                {"503", &RetryOn::s503},
                                                {"504", &RetryOn::s504}}};

void read_causes(const Field& field, RetryOn& on) {
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return;
  on = {.connect = false, .reset = false};
  for (const Field& item : *items) {
    Cause cause = nullptr;
    choice(cause, kCauses)(item);
    if (cause != nullptr) on.*cause = true;
  }
}

// `p95`, `p99.9`, or a time.
void read_after(const Field& field, Hedge& hedge) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  const std::string_view text = scalar->text;
  if (text.starts_with('p')) {
    const auto percent = parse_number(text.substr(1), 50, 99.99);
    if (percent)
      hedge.quantile = *percent / 100;
    else
      field.error("is not a quantile from p50 to p99.99, or a time such as 20ms");
    return;
  }
  const auto time = parse_duration(text, 1ms);
  if (!time) return field.error("is not a quantile from p50 to p99.99, or a time such as 20ms");
  hedge.quantile = 0;
  hedge.after = *time;
}

}  // namespace

void read_retry(const Field& field, Retry& retry) {
  MapReader map(field);
  map.read("attempts", integer(retry.attempts, 0, 100));
  map.read("on", [&](const Field& f) { read_causes(f, retry.on); });
  map.read("budget", share(retry.budget));
  map.finish();
}

void read_hedge(const Field& field, std::optional<Hedge>& hedge) {
  if (is_off(field)) return hedge.reset();
  Hedge read;
  MapReader map(field);
  map.read("after", [&](const Field& f) { read_after(f, read); });
  map.read("budget", share(read.budget));
  map.finish();
  hedge = read;
}

void read_connections(const Field& field, Connections& connections) {
  MapReader map(field);
  map.read("max_idle", integer(connections.max_idle, 0, 100'000));
  map.read("max", integer(connections.max, 0, 1'000'000));
  map.read("queue", integer(connections.queue, 0, 1'000'000));
  map.read("queue_timeout", duration(connections.queue_timeout, 1ms));
  map.finish();
}

}  // namespace clockwise::config
