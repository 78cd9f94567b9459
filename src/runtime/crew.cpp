#include "runtime/crew.h"

#include <condition_variable>
#include <mutex>

#include "runtime/log.h"

namespace clockwise::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kAdoptPatience = 5s;
constexpr auto kGiveUpCheck = 50ms;

// Counts workers that have done something; shared with callbacks that may come late.
struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t done = 0;
  Result<void> result;  // the first error

  void add(const Result<void>& adopted) {
    const std::lock_guard lock(mutex);
    ++done;
    if (result && !adopted) result = adopted;
    changed.notify_all();
  }
};

}  // namespace

Crew::Crew(std::size_t workers, metrics::PerWorker<metrics::WorkerCells>& cells,
           const std::shared_ptr<proxy::AccessLog>& log) {
  for (std::size_t i = 0; i < workers; ++i)
    workers_.push_back(std::make_unique<proxy::Worker>(i, cells.at(i), log));
}

Crew::~Crew() = default;

Result<void> Crew::open(const proxy::WorkerState& state) {
  for (const auto& worker : workers_)
    if (auto opened = worker->open(state); !opened) return opened.error();
  return {};
}

void Crew::start() {
  for (const auto& worker : workers_) worker->start();
}

Result<void> Crew::adopt(const proxy::WorkerState& state) {
  const auto tally = std::make_shared<Tally>();
  for (const auto& worker : workers_)
    worker->adopt(state, [tally](const Result<void>& adopted) { tally->add(adopted); });

  const auto deadline = std::chrono::steady_clock::now() + kAdoptPatience;
  std::unique_lock lock(tally->mutex);
  while (tally->done < workers_.size() && !giving_up_) {
    tally->changed.wait_for(lock, kGiveUpCheck);
    if (std::chrono::steady_clock::now() < deadline) continue;
    log::warn("{} of {} workers are busy and take the new configuration later",
              workers_.size() - tally->done, workers_.size());
    break;
  }
  return tally->result;
}

void Crew::drain(std::function<void()> drained) {
  const auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
  for (const auto& worker : workers_)
    worker->drain([left, drained] {
      if (left->fetch_sub(1) == 1) drained();
    });
}

void Crew::stop() {
  for (const auto& worker : workers_) worker->stop();
}

}  // namespace clockwise::runtime
