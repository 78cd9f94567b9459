// A call that cannot be interrupted, such as one to the system's resolver, with a bound all the
// same.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

namespace clockwise::cli {

// What `call` returns; nothing when it has not returned by then. It runs on a thread of its own,
// which is left behind in that case: it must own all that it uses, and not throw.
template <class Call>
[[nodiscard]] auto within(std::chrono::milliseconds longest, Call call)
    -> std::optional<decltype(call())> {
  std::promise<decltype(call())> promise;
  auto result = promise.get_future();
  std::thread([promise = std::move(promise), call = std::move(call)]() mutable {
    promise.set_value(call());
  }).detach();
  if (result.wait_for(longest) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace clockwise::cli
