#include "runtime/crew.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

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

Crew::Crew(metrics::PerWorker<metrics::WorkerCells>& cells,
           std::shared_ptr<const proxy::Admission> admission, std::function<void()> left)
    : cells_(cells), admission_(std::move(admission)), left_(std::move(left)) {}

Crew::~Crew() = default;

Result<void> Crew::open(const proxy::WorkerState& state, std::size_t workers) {
  auto hired = hire(state, workers);
  if (!hired) return hired.error();
  workers_ = std::move(*hired);
  return {};
}

void Crew::start() {
  for (const Member& member : workers_) member.worker->start();
}

// Workers that are missing up to `workers`: opened, not started.
Result<std::vector<Crew::Member>> Crew::hire(const proxy::WorkerState& state, std::size_t workers) {
  std::vector<Member> hired;
  while (workers_.size() + hired.size() < workers) {
    const auto index = free_index(hired);
    if (!index)
      return fail(
          "workers: earlier ones still finish what they have; try again when they are done");
    auto worker = std::make_unique<proxy::Worker>(*index, cells_.at(*index), admission_);
    if (auto opened = worker->open(state); !opened) return opened.error();
    hired.push_back({.index = *index, .worker = std::move(worker), .empty = {}});
  }
  return hired;
}

// Counters have one writer, so an index is free only when its worker is gone.
std::optional<std::size_t> Crew::free_index(const std::vector<Member>& hired) const {
  for (std::size_t index = 0; index < cells_.all().size(); ++index) {
    const auto has = [index](const Member& member) { return member.index == index; };
    if (std::ranges::none_of(workers_, has) && std::ranges::none_of(dismissed_, has) &&
        std::ranges::none_of(hired, has))
      return index;
  }
  return std::nullopt;
}

Result<void> Crew::adopt(const proxy::WorkerState& state, std::size_t workers) {
  reap();
  auto hired = hire(state, workers);
  if (!hired) return hired.error();
  if (auto adopted = hand_over(state, workers); !adopted) return adopted;

  const std::lock_guard lock(mutex_);
  if (draining_) return {};
  for (Member& member : *hired) {
    member.worker->start();
    workers_.push_back(std::move(member));
  }
  while (workers_.size() > workers) {
    Member& last = workers_.back();
    last.empty = std::make_shared<std::atomic<bool>>(false);
    last.worker->drain([empty = last.empty, left = left_] {
      *empty = true;
      left();
    });
    dismissed_.push_back(std::move(last));
    workers_.pop_back();
  }
  return {};
}

// Gives the state to those that stay.
Result<void> Crew::hand_over(const proxy::WorkerState& state, std::size_t workers) {
  const auto tally = std::make_shared<Tally>();
  const std::size_t staying = std::min(workers, workers_.size());
  for (std::size_t i = 0; i < staying; ++i)
    workers_[i].worker->adopt(state, [tally](const Result<void>& adopted) { tally->add(adopted); });

  const auto deadline = std::chrono::steady_clock::now() + kAdoptPatience;
  std::unique_lock lock(tally->mutex);
  while (tally->done < staying && !giving_up_) {
    tally->changed.wait_for(lock, kGiveUpCheck);
    if (std::chrono::steady_clock::now() < deadline) continue;
    log::warn("{} of {} workers are busy and take the new configuration later",
              staying - tally->done, staying);
    break;
  }
  return tally->result;
}

bool Crew::all_turn() {
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (Member& member : workers_) {
    std::uint64_t turns = 0;
    for (const metrics::Cell& bucket : cells_.at(member.index).loop_delay.buckets)
      turns += bucket.get();
    all &= std::exchange(member.turns, turns) != turns;
  }
  return all;
}

void Crew::reap() {
  std::vector<Member> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto rest =
        std::ranges::partition(dismissed_, [](const Member& member) { return !*member.empty; });
    for (Member& member : rest) gone.push_back(std::move(member));
    dismissed_.erase(rest.begin(), rest.end());
  }
  for (const Member& member : gone) member.worker->stop();
}

void Crew::drain(std::function<void()> drained) {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  const auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size() + dismissed_.size());
  const auto one_less = [left, drained = std::move(drained)] {
    if (left->fetch_sub(1) == 1) drained();
  };
  for (const Member& member : workers_) member.worker->drain(one_less);
  for (const Member& member : dismissed_) member.worker->drain(one_less);
}

void Crew::stop() {
  for (const Member& member : workers_) member.worker->stop();
  for (const Member& member : dismissed_) member.worker->stop();
}

}  // namespace clockwise::runtime
