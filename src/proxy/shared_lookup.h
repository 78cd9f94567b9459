// One look-up in the second store of a cache: the entry of a key, the variant that fits, its parts.
//
// It takes no longer than the budget: then its owner goes on, and what comes later only tells what
// stands there, for a write. A place where nothing stands is marked, so that of several proxies one
// fetches and the others wait a little for what it brings. One thread; may be destroyed at any
// time, also by the words it says to its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "io/deadlines.h"
#include "proxy/hedge.h"
#include "proxy/shared_store.h"

namespace clockwise::proxy {

// Where an answer stands or would stand.
struct SharedPlace {
  SharedItem item;  // of the key
  // Where fields decide: which, with commas between them, and where what answers this request is.
  std::string names;
  std::uint64_t generation = 0;
  SharedItem variant;
};

class SharedLookup final : HedgeClock::Place, io::Deadlines::Node {
 public:
  // What an entry is good for: nothing, an answer, or to be validated.
  enum class Use : std::uint8_t { none, hit, stale };
  enum class Result : std::uint8_t {
    found,  // entry() and body(); use() is hit or stale
    missed,
    late,
    failed
  };

  class Owner {
   public:
    // What the request says to these fields, packed (cache/vary.h).
    [[nodiscard]] virtual std::string selectors_of(std::string_view names) = 0;
    // An entry of the key. Its body may not be there yet.
    [[nodiscard]] virtual Use use_of(const cache::Entry& entry) = 0;
    // Said once, and never from within start().
    virtual void on_shared(Result result) = 0;

   protected:
    ~Owner() = default;
  };

  SharedLookup(SharedStore& store, Owner& owner);
  ~SharedLookup() override;

  // `waits`: for what another proxy fetches. False: nobody can be asked, and nothing is said.
  [[nodiscard]] bool start(std::string_view key, bool waits);

  [[nodiscard]] SharedStore& store() noexcept { return store_; }
  [[nodiscard]] Use use() const noexcept { return use_; }
  [[nodiscard]] const cache::Entry& entry() const noexcept { return entry_; }
  [[nodiscard]] std::vector<std::string_view> body() const;
  // What is known of the place by now, for whoever writes there.
  [[nodiscard]] SharedPlace take_place();

 private:
  class Read;
  class ItemRead;
  class PartRead;
  enum class State : std::uint8_t { asking, waiting, parts, over };

  [[nodiscard]] bool ask();
  void item_read(bool good);
  void learn();
  void go_on();
  void ask_variant();
  void take(const cache::Entry& entry);
  void ask_parts();
  void part_read(bool good);
  void wait();
  void set_budget();
  void clear_budget() noexcept;
  void octets_came();
  void end(Result result);
  void on_late() override;
  void on_deadline() override;

  SharedStore& store_;
  Owner& owner_;
  std::string key_;
  SharedPlace place_;
  SharedItem* asked_ = &place_.item;  // or the variant
  State state_ = State::over;
  Use use_ = Use::none;
  bool waits_ = false;
  bool granted_ = false;  // a moment more than the budget
  std::uint64_t begun_ns_ = 0;
  io::Milliseconds waits_until_ = 0;
  cache::Entry entry_;
  std::unique_ptr<ItemRead> read_;  // that entry_ points into
  std::vector<std::unique_ptr<PartRead>> parts_;
  std::size_t parts_left_ = 0;
};

}  // namespace clockwise::proxy
