#include "proxy/backfills.h"

#include <algorithm>
#include <utility>

#include "proxy/context.h"

namespace clockwise::proxy {

using metrics::at;
using metrics::Backfill;
using upstream::ItemCopy;

namespace {

Backfill to_metric(ItemCopy::Result result) noexcept {
  switch (result) {
    case ItemCopy::Result::copied:
      return Backfill::copied;
    case ItemCopy::Result::present:
      return Backfill::present;
    case ItemCopy::Result::outdated:
      return Backfill::outdated;
    case ItemCopy::Result::unfit:
      return Backfill::skipped;
    case ItemCopy::Result::failed:
      break;
  }
  return Backfill::error;
}

}  // namespace

class Backfills::Slot final : ItemCopy::Owner {
 public:
  explicit Slot(Backfills& home) : home_(home), copy(home.context_.loop, *this) {}

  void start(PoolView& view, upstream::MemcachedServer& from, upstream::MemcachedServer& to,
             std::string_view key, std::uint64_t most) {
    view_ = &view;
    most_ = most;
    ++view.users;
    copy.start(from, to, key, view.pool->config.timeouts.response);
  }

 private:
  bool hold(std::size_t octets) override {
    if (home_.context_.memcached_held + octets > most_) return false;
    held_ += octets;
    home_.context_.memcached_held += octets;
    return true;
  }

  void on_copied(ItemCopy::Result result) override {
    home_.context_.memcached_held -= std::exchange(held_, 0);
    at(view_->memcached_cells->backfills, to_metric(result)).add();
    --std::exchange(view_, nullptr)->users;
    home_.done(*this);
  }

  Backfills& home_;
  PoolView* view_ = nullptr;
  std::uint64_t most_ = 0;
  std::size_t held_ = 0;

 public:
  ItemCopy copy;
};

Backfills::Backfills(Context& context) : context_(context) {}

Backfills::~Backfills() = default;

void Backfills::start(PoolView& view, upstream::MemcachedServer& from,
                      upstream::MemcachedServer& to, std::string_view key, std::uint64_t most) {
  if (is_under_way(to, key)) return;
  if (under_way_.size() >= kMost || !from.may_know_meta() || !to.may_know_meta())
    return at(view.memcached_cells->backfills, Backfill::skipped).add();
  if (free_.empty()) free_.push_back(std::make_unique<Slot>(*this));
  under_way_.push_back(std::move(free_.back()));
  free_.pop_back();
  under_way_.back()->start(view, from, to, key, most);
}

bool Backfills::is_under_way(const upstream::MemcachedServer& to,
                             std::string_view key) const noexcept {
  return std::ranges::any_of(under_way_, [&](const auto& slot) {
    return slot->copy.to() == &to && slot->copy.key() == key;
  });
}

void Backfills::done(Slot& slot) {
  const auto found = std::ranges::find(under_way_, &slot, &std::unique_ptr<Slot>::get);
  free_.push_back(std::move(*found));
  under_way_.erase(found);
}

}  // namespace clockwise::proxy
