// Items on their way from an owner that has them to one before it that has not, in the background.
//
// Each is a few commands and has its value held for a moment, so only so many are under way at a
// time; what is left out is copied when it is asked for again. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "upstream/item_copy.h"

namespace clockwise::proxy {

class Context;
struct PoolView;

class Backfills {
 public:
  static constexpr std::size_t kMost = 64;  // of a worker

  explicit Backfills(Context& context);
  ~Backfills();
  Backfills(const Backfills&) = delete;
  Backfills& operator=(const Backfills&) = delete;

  // Copies the item of a key, as the ring hashes it; unless that is under way. `most`: of octets
  // that memcached listeners make the worker hold, this among them.
  void start(PoolView& view, upstream::MemcachedServer& from, upstream::MemcachedServer& to,
             std::string_view key, std::uint64_t most);

 private:
  class Slot;

  [[nodiscard]] bool is_under_way(const upstream::MemcachedServer& to,
                                  std::string_view key) const noexcept;
  void done(Slot& slot);

  Context& context_;
  std::vector<std::unique_ptr<Slot>> under_way_, free_;
};

}  // namespace clockwise::proxy
