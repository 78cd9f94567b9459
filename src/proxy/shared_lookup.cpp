#include "proxy/shared_lookup.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace clockwise::proxy {

using cache::Entry;
using memcached::Reply;
using memcached::ReplyKind;
using metrics::at;
using metrics::MemcachedResult;
using metrics::MemcachedVerb;
using upstream::CallFailure;

namespace {

// How long the mark stands that says who fetches: longer than most fetches take. Should that one
// never come to an end, whoever waits has a limit of his own.
constexpr std::string_view kReadAndMark = " v c N60\r\n";

// Who waits for what another proxy fetches asks so often; the clock goes in ticks.
constexpr io::Milliseconds kAskAgain = io::Deadlines::kTick;

// As long as octets keep coming, so many budgets in all.
constexpr std::uint64_t kMostBudgets = 10;

// What came in time may not have been seen yet.
constexpr std::chrono::milliseconds kMoment{1};

}  // namespace

// One value on its way.
class SharedLookup::Read : public upstream::MemcachedCall {
 public:
  explicit Read(SharedLookup& lookup) : lookup_(lookup) {}
  ~Read() override { lookup_.store_.let_go(held_); }

  [[nodiscard]] bool ask(const std::string& key, std::string_view how) {
    const auto target = lookup_.store_.target(key);
    if (!target) return false;
    server = target->server;
    return lookup_.store_.ask(*this, *server, "mg " + key + std::string(how));
  }

  upstream::MemcachedServer* server = nullptr;
  std::string value;

 protected:
  virtual void on_read(bool good) = 0;
  virtual void on_flags(std::string_view) {}

  SharedLookup& lookup_;

 private:
  bool on_reply(const Reply& reply) override {
    kind_ = reply.kind;
    if (kind_ == ReplyKind::end || memcached::is_error(kind_)) return true;
    if (kind_ != ReplyKind::value) return false;
    on_flags(reply.rest);
    crowded_ = !lookup_.store_.hold(reply.length);
    if (crowded_) return true;
    held_ = reply.length;
    value.reserve(held_);
    return true;
  }
  void on_value(std::string_view octets, std::uint32_t) override {
    if (held_ == 0) return;
    value.append(octets);
    lookup_.octets_came();
  }
  void on_answered() override {
    if (lookup_.state_ != State::over) lookup_.store_.was_in_time(*server);
    const bool error = memcached::is_error(kind_);
    lookup_.store_.count(MemcachedVerb::get, error                       ? MemcachedResult::error
                                             : kind_ == ReplyKind::value ? MemcachedResult::hit
                                                                         : MemcachedResult::miss);
    on_read(!error && !crowded_);
  }
  void on_failed(CallFailure) override {
    lookup_.store_.count(MemcachedVerb::get, MemcachedResult::error);
    on_read(false);
  }

  ReplyKind kind_ = ReplyKind::end;
  std::size_t held_ = 0;
  bool crowded_ = false;  // there is no room for it
};

class SharedLookup::ItemRead final : public Read {
 public:
  using Read::Read;

  std::uint64_t unique = 0;
  bool won = false;     // nothing stood there, and this proxy has marked the place
  bool marked = false;  // or another one has

 private:
  void on_flags(std::string_view flags) override {
    unique = memcached::meta_number<std::uint64_t>(flags, 'c');
    won = memcached::has_meta_flag(flags, 'W');
    marked = memcached::has_meta_flag(flags, 'Z');
  }
  void on_read(bool good) override { lookup_.item_read(good); }
};

class SharedLookup::PartRead final : public Read {
 public:
  PartRead(SharedLookup& lookup, std::uint32_t index) : Read(lookup), index_(index) {}

  std::optional<std::string_view> octets;

 private:
  void on_read(bool good) override {
    const Entry& entry = lookup_.entry_;
    const std::uint64_t size = std::min<std::uint64_t>(
        entry.part_size, entry.length - std::uint64_t{index_} * entry.part_size);
    octets = cache::read_part(value, entry.generation, index_);
    lookup_.part_read(good && octets && octets->size() == size);
  }

  const std::uint32_t index_;
};

SharedLookup::SharedLookup(SharedStore& store, Owner& owner) : store_(store), owner_(owner) {}

SharedLookup::~SharedLookup() {
  clear_budget();
  store_.release(place_.item);
  store_.release(place_.variant);
}

bool SharedLookup::start(std::string_view key, bool waits) {
  store_.remove_purged();
  const config::Cache& settings = store_.config();
  key_ = key;
  place_.item.key = store_.item_key(key);
  waits_ = waits;
  waits_until_ =
      store_.context().loop.now() + static_cast<io::Milliseconds>(settings.pool_wait.count());
  if (ask()) return true;
  state_ = State::over;
  at(store_.cells().lookups, metrics::SharedLookup::error).add();
  return false;
}

bool SharedLookup::ask() {
  if (!store_.open()) return false;
  state_ = State::asking;
  read_ = std::make_unique<ItemRead>(*this);
  if (!read_->ask(asked_->key, kReadAndMark)) return false;
  if (!HedgeClock::Place::set()) set_budget();
  return true;
}

// --- what is there ------------------------------------------------------------------------------

void SharedLookup::item_read(bool good) {
  if (good) learn();
  if (state_ == State::over) return;
  if (!good) return end(Result::failed);
  go_on();
}

// The place, as the read has told.
void SharedLookup::learn() {
  asked_->server = read_->server;
  asked_->unique = read_->unique;
  const auto entry = cache::read_entry(read_->value);
  asked_->useless = read_->won || (!entry && !read_->marked);
  if (!entry || entry->key != key_ || entry->kind != Entry::Kind::vary) return;
  if (asked_ != &place_.item) return;
  place_.names = entry->selectors;
  place_.generation = entry->generation;
}

void SharedLookup::go_on() {
  const auto entry = cache::read_entry(read_->value);
  if (read_->marked && !entry && waits_ && store_.context().loop.now() < waits_until_)
    return wait();
  if (!entry || entry->key != key_) return end(Result::missed);
  if (entry->kind != Entry::Kind::vary) return take(*entry);
  if (asked_ == &place_.item) return ask_variant();
  end(Result::missed);
}

void SharedLookup::ask_variant() {
  const std::string said = owner_.selectors_of(place_.names);
  place_.variant.key = cache::variant_key(place_.item.key, place_.generation, said);
  asked_ = &place_.variant;
  if (!ask()) end(Result::failed);
}

void SharedLookup::take(const Entry& entry) {
  use_ = owner_.use_of(entry);
  if (use_ == Use::none) return end(Result::missed);
  entry_ = entry;
  if (entry.kind == Entry::Kind::answer) return end(Result::found);
  ask_parts();
}

void SharedLookup::ask_parts() {
  state_ = State::parts;
  parts_left_ = entry_.parts();
  for (std::uint32_t i = 0; i < entry_.parts(); ++i) {
    PartRead& part = *parts_.emplace_back(std::make_unique<PartRead>(*this, i));
    const std::string key = cache::part_key(place_.item.key, entry_.generation, i);
    if (!store_.open() || !part.ask(key, " v\r\n")) return end(Result::failed);
  }
}

// One that is missing makes the others useless.
void SharedLookup::part_read(bool good) {
  if (state_ != State::parts) return;
  if (!good) return end(Result::missed);
  if (--parts_left_ == 0) end(Result::found);
}

std::vector<std::string_view> SharedLookup::body() const {
  if (entry_.kind == Entry::Kind::answer) return {entry_.body};
  std::vector<std::string_view> pieces;
  for (const auto& part : parts_) pieces.push_back(*part->octets);
  return pieces;
}

SharedPlace SharedLookup::take_place() {
  asked_ = &place_.item;
  read_.reset();
  return std::exchange(place_, {});
}

// --- time ---------------------------------------------------------------------------------------

// Another proxy fetches it.
void SharedLookup::wait() {
  state_ = State::waiting;
  clear_budget();
  io::Loop& loop = store_.context().loop;
  loop.deadlines.set(*this, loop.now() + kAskAgain);
}

void SharedLookup::on_deadline() {
  if (state_ == State::waiting && !ask()) end(Result::failed);
}

void SharedLookup::set_budget() {
  begun_ns_ = store_.context().loop.now_ns();
  granted_ = false;
  store_.budgets().set(*this, store_.config().pool_budget);
}

void SharedLookup::clear_budget() noexcept {
  if (HedgeClock::Place::set()) (granted_ ? store_.moments() : store_.budgets()).clear(*this);
}

void SharedLookup::octets_came() {
  if (!HedgeClock::Place::set()) return;
  const std::chrono::nanoseconds budget = store_.config().pool_budget;
  const std::uint64_t last = begun_ns_ + kMostBudgets * static_cast<std::uint64_t>(budget.count());
  if (store_.context().loop.now_ns() >= last) return;
  clear_budget();
  granted_ = false;
  store_.budgets().set(*this, budget);
}

void SharedLookup::on_late() {
  if (!granted_) {
    granted_ = true;
    return store_.moments().set(*this, kMoment);
  }
  if (state_ == State::asking) store_.was_late(*read_->server);
  for (const auto& part : parts_)
    if (part->under_way()) store_.was_late(*part->server);
  end(Result::late);
}

void SharedLookup::end(Result result) {
  state_ = State::over;
  clear_budget();
  if (result != Result::found) parts_.clear();
  using Counted = metrics::SharedLookup;
  at(store_.cells().lookups, result == Result::late     ? Counted::late
                             : result == Result::failed ? Counted::error
                             : result == Result::missed ? Counted::miss
                             : use_ == Use::stale       ? Counted::stale
                                                        : Counted::hit)
      .add();
  owner_.on_shared(result);
}

}  // namespace clockwise::proxy
