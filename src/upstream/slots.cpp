#include "upstream/slots.h"

#include <algorithm>

namespace clockwise::upstream {

namespace {

// Another worker notices a free slot with its next tick.
constexpr std::uint32_t kRest = 2;

}  // namespace

bool Slots::take() noexcept {
  const std::uint32_t max = max_ == 0 ? UINT32_MAX : max_;
  if (max_ != 0 && others_waiting() > 0) {
    const std::uint32_t share = (max_ + contenders() - 1) / contenders();
    if (rest_ > 0 || own_ >= share) return false;
  }
  std::uint32_t open = shared_.open.load(std::memory_order_relaxed);
  do {
    if (open >= max) return false;
  } while (!shared_.open.compare_exchange_weak(open, open + 1, std::memory_order_relaxed));
  contend(own_++ + waiting_);
  return true;
}

void Slots::give_back() noexcept {
  shared_.open.fetch_sub(1, std::memory_order_relaxed);
  --own_;
  retire_from_contest();
}

void Slots::wait() noexcept {
  shared_.waiting.fetch_add(1, std::memory_order_relaxed);
  contend(own_ + waiting_++);
}

void Slots::waited() noexcept {
  shared_.waiting.fetch_sub(1, std::memory_order_relaxed);
  --waiting_;
  retire_from_contest();
}

void Slots::contend(std::uint32_t before) noexcept {
  if (before == 0) shared_.contenders.fetch_add(1, std::memory_order_relaxed);
}

void Slots::retire_from_contest() noexcept {
  if (own_ + waiting_ == 0) shared_.contenders.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Slots::to_give_up(io::Milliseconds now, std::uint32_t idle) noexcept {
  if (rest_ > 0) --rest_;
  const std::uint32_t others = max_ == 0 ? 0 : others_waiting();
  if (others == 0) {
    others_wait_since_ = io::Deadlines::kNever;
    return 0;
  }
  others_wait_since_ = std::min(others_wait_since_, now);
  const bool needs_them = waiting_ > 0;
  if (needs_them && now - others_wait_since_ < kTurn) return 0;
  others_wait_since_ = now;
  const std::uint32_t share = max_ / contenders();
  std::uint32_t surplus = own_ > share ? own_ - share : 0;
  if (!needs_them) surplus = std::max(surplus, idle);
  if (surplus > 0) rest_ = kRest;
  return std::min(surplus, others);
}

}  // namespace clockwise::upstream
