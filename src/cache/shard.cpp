#include "cache/shard.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/intrusive/parent_from_member.hpp>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <ranges>
#include <utility>

namespace clockwise::cache {
namespace {

// Bodies of a declared length up to this stand behind their head, in one piece, where such a piece
// is there or comes with what is evicted anyway: among many small answers nearly all of them would
// have to go for it.
constexpr std::uint64_t kMostInline = 64ULL * 1024;

// Pieces of other bodies: what is declared in pieces of the larger size, what is not from the
// smaller one on, doubled each time.
constexpr std::uint64_t kLeastExtent = 4ULL * 1024;
constexpr std::uint64_t kMostExtent = 256ULL * 1024;
// Where free pieces are small, so many of them do; below this they would be mostly overhead.
constexpr std::uint64_t kMostPieces = 64;
constexpr std::uint64_t kLeastPiece = 512;

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// A bucket and a ghost for about as many octets: as many as small answers fit.
constexpr std::uint64_t kOctetsPerBucket = 1024;

constexpr std::size_t kMostText = 0xffff;

// So many fetches of one key are looked at by who could join one. Only where each is for one client
// are there more, and then the lock is not to be held for all of them.
constexpr std::size_t kMostLooks = 256;

std::size_t buckets_for(std::uint64_t size) {
  return std::bit_floor(std::max<std::uint64_t>(size / kOctetsPerBucket, 16));
}

// Whole pages, as the arena would take more otherwise.
std::uint64_t room_in(std::uint64_t size, const std::vector<Object*>& buckets,
                      const Eviction& eviction) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (size - buckets.size() * sizeof(Object*) - eviction.memory()) / page * page;
}

// Neither fresh nor of use when it is stale.
bool is_spent(const Terms& terms, std::int64_t now_ms) noexcept {
  if (terms.has_validator) return false;
  const Seconds longest =
      terms.never_stale ? 0 : std::max(terms.stale_while_revalidate, terms.stale_if_error);
  return current_age(terms, now_ms) >= terms.lifetime + longest;
}

}  // namespace

Shard::Shard(std::uint64_t size)
    : buckets_(buckets_for(size)),
      eviction_(size, buckets_.size()),
      arena_(room_in(size, buckets_, eviction_)) {
  eviction_.set_capacity(arena_.size());
}

Shard::~Shard() {
  for (Object*& first : buckets_)
    while (first != nullptr) remove(*first, EvictionReason::purged);
}

ObjectRef Shard::hold(Object& object) noexcept {
  object.references_.fetch_add(1, std::memory_order_relaxed);
  return {*this, object};
}

// --- requests -----------------------------------------------------------------------------------

Store::Found Shard::find(const Wanted& wanted, std::int64_t now_ms) {
  const std::shared_lock lock(mutex_);
  return find_locked(wanted, now_ms);
}

Store::Found Shard::find_locked(const Wanted& wanted, std::int64_t now_ms) {
  Store::Found found;
  for (Object* object = bucket(wanted.hash); object != nullptr; object = object->next_) {
    if (object->node_.hash() != wanted.hash || object->key() != wanted.key) continue;
    if (is_out(*object)) continue;
    if (object->is_marker()) {
      found.pass = current_age(object->terms_, now_ms) < object->terms_.lifetime;
      found.probe = found.pass && wanted.may_fetch && object->claim_refresh();
      continue;
    }
    const std::string_view selectors = object->selectors();
    found.other = true;
    if (!selectors.empty() && !matches(unpack(selectors), wanted.octets, wanted.fields)) continue;
    found.object = hold(*object);
    break;
  }
  return found;
}

// A purge that is under way counts already.
bool Shard::is_out(const Object& object) const noexcept {
  for (const PurgeRule& rule : rules_) {
    if (object.generation_ >= rule.generation || !rule.names(object)) continue;
    if (!rule.soft) return true;
    object.make_stale();
  }
  return false;
}

Store::Joined Shard::join(const Wanted& wanted, const ObjectRef& found, bool alone,
                          std::uint32_t generation, std::int64_t now_ms) {
  Store::Joined joined;
  const std::unique_lock lock(mutex_);
  Wanted looks = wanted;
  looks.may_fetch = false;  // who probes knows it already
  auto now = find_locked(looks, now_ms);
  // What was released here would have to be freed under this lock: the caller gets it.
  joined.object = std::move(now.object);
  joined.pass = now.pass;
  if (joined.object && !(joined.object == found)) return joined;
  if (joined.pass && !alone) return joined;

  // Which fields decide, as far as an answer to this key has told.
  Lines vary;
  std::vector<Selector> known;
  each_of(wanted.hash, wanted.key, [&](Object& object) {
    if (known.empty()) known = unpack(object.selectors());
  });
  for (const auto& [of, fill] : fills_of(wanted.hash) | std::views::take(kMostLooks)) {
    if (fill->key_ != wanted.key) continue;
    if (known.empty()) known = fill->selectors_;
    if (alone || !is_joinable(*fill)) continue;
    if (!matches(fill->selectors_, wanted.octets, wanted.fields)) continue;
    joined.fill = fill;
    return joined;
  }
  joined.fill = std::make_shared<Fill>(wanted.hash, wanted.key, generation);
  joined.fill->joinable_ = !alone;
  for (const Selector& one : known) vary.push_back(one.name);
  joined.fill->selectors_ = selectors(vary, wanted.octets, wanted.fields);
  joined.leads = true;
  joined.fill->place_ = fills_.emplace(wanted.hash, joined.fill);
  return joined;
}

// A purge counts from its answer on: who asks after it waits for no fetch from before it, nor for
// one that may turn out to be named by it.
bool Shard::is_joinable(const Fill& fill) noexcept {
  return fill.joinable_ && !fill.beside_ && !fill.doomed_ && !fill.softened_ && fill.rules_.empty();
}

template <class F>
void Shard::each_of(std::uint64_t hash, std::string_view key, F f) {
  for (Object* object = bucket(hash); object != nullptr;) {
    Object* const next = object->next_;
    if (object->node_.hash() == hash && object->key() == key) f(*object);
    object = next;
  }
}

// --- memory -------------------------------------------------------------------------------------

// Not much more than `evictable` octets are evicted for it.
void* Shard::take(std::size_t size, std::uint64_t evictable, std::int64_t now_ms) {
  if (Arena::cost(size) > arena_.size()) return nullptr;
  while (true) {
    if (void* piece = arena_.take(size)) return piece;
    const std::uint64_t evicted = evictable > 0 ? evict_one(now_ms) : 0;
    if (evicted == 0) return nullptr;
    evictable -= std::min(evictable, evicted);
  }
}

std::span<char> Shard::take_up_to(std::size_t size, std::size_t least, std::int64_t now_ms) {
  while (true) {
    const std::span<char> piece = arena_.take_up_to(size, least);
    if (!piece.empty() || evict_one(now_ms) == 0) return piece;
  }
}

// What it cost; 0: nobody is left.
std::uint64_t Shard::evict_one(std::int64_t now_ms) {
  Eviction::Node* node = eviction_.next_out();
  if (node == nullptr) return 0;
  const std::uint64_t size = node->size();
  Object& object = *boost::intrusive::get_parent_from_member(node, &Object::node_);
  const auto age = current_age(object.terms_, now_ms);
  const bool spent = object.is_marker() || is_spent(object.terms_, now_ms);
  if (!spent) {
    const auto bucket = std::ranges::lower_bound(kEvictionAges, age) - kEvictionAges.begin();
    ++counted_.eviction_ages[static_cast<std::size_t>(bucket)];
    counted_.eviction_age_sum += static_cast<double>(age);
  }
  remove(object, spent ? EvictionReason::expired : EvictionReason::size);
  return size;
}

Object* Shard::make(const Fill& fill, const Draft& draft, std::uint32_t inline_size,
                    std::int64_t now_ms) {
  const std::string packed = pack(draft.selectors);
  for (const std::string_view text :
       {std::string_view(fill.key_), draft.head, std::string_view(packed), draft.tags})
    if (text.size() > kMostText) return nullptr;
  const std::size_t texts =
      fill.key_.size() + draft.head.size() + packed.size() + draft.tags.size();
  const std::size_t least = sizeof(Object) + texts;
  void* place = inline_size > 0 ? take(least + inline_size, inline_size / 2, now_ms) : nullptr;
  if (place == nullptr) {
    inline_size = 0;
    place = take(least, kAny, now_ms);
  }
  if (place == nullptr) return nullptr;
  auto* object = new (place) Object;
  auto* text = reinterpret_cast<char*>(object + 1);
  const auto add = [&](std::string_view one) {
    text = std::ranges::copy(one, text).out;
    return static_cast<std::uint16_t>(one.size());
  };
  object->key_size_ = add(fill.key_);
  object->head_size_ = add(draft.head);
  object->selectors_size_ = add(packed);
  object->tags_size_ = add(draft.tags);
  object->inline_size_ = inline_size;
  object->terms_ = draft.terms;
  object->status_ = draft.status;
  object->generation_ = fill.generation_;
  return object;
}

// Without what stands in extents.
std::uint64_t Shard::cost_of(const Object& object) noexcept {
  const char* const body = object.inline_body();
  return Arena::cost(static_cast<std::size_t>(body - reinterpret_cast<const char*>(&object)) +
                     object.inline_size_);
}

void Shard::insert(Object& object, std::uint64_t hash, std::uint64_t cost) {
  Object*& first = bucket(hash);
  object.next_ = first;
  first = &object;
  object.references_.fetch_add(1, std::memory_order_relaxed);
  eviction_.insert(object.node_, hash, static_cast<std::uint32_t>(cost));
  if (!object.is_marker()) ++objects_;
}

void Shard::unlink(Object& object) noexcept {
  Object** place = &bucket(object.node_.hash());
  while (*place != &object) place = &(*place)->next_;
  *place = object.next_;
  if (object.node_.is_in()) eviction_.remove(object.node_);
  if (!object.is_marker()) --objects_;
}

void Shard::remove(Object& object, EvictionReason reason) noexcept {
  if (!object.is_marker()) ++counted_.evictions[static_cast<std::size_t>(reason)];
  unlink(object);
  drop(object);
}

// One count less.
void Shard::drop(Object& object) noexcept {
  if (object.references_.fetch_sub(1, std::memory_order_acq_rel) == 1) free(object);
}

void Shard::free(Object& object) noexcept {
  if (object.borrows_) {
    drop(*object.owner_);
  } else {
    for (Extent* extent = object.rest_; extent != nullptr;) {
      Extent* const next = extent->next;
      free(*extent);
      extent = next;
    }
  }
  object.~Object();
  arena_.give_back(&object);
}

void Shard::free(Extent& extent) noexcept {
  if (extent.from_heap) {
    std::free(&extent);
  } else {
    arena_.give_back(&extent);
  }
}

void Shard::destroy(Object& object) noexcept {
  const std::unique_lock lock(mutex_);
  free(object);
}

// --- the one who fetches ------------------------------------------------------------------------

void Shard::publish(Fill& fill, ObjectRef object, std::uint64_t length, Fill::State state) {
  {
    const std::lock_guard lock(fill.mutex_);
    fill.object_ = std::move(object);
  }
  fill.length_.store(length, std::memory_order_release);
  fill.become(state);
}

bool Shard::begin(Fill& fill, const Draft& draft, std::int64_t now_ms) {
  const auto inline_size =
      static_cast<std::uint32_t>(draft.length <= kMostInline ? draft.length : 0);
  Object* object = nullptr;
  {
    const std::unique_lock lock(mutex_);
    object = make(fill, draft, inline_size, now_ms);
    if (object == nullptr) {
      ++counted_.rejected;
      return false;
    }
    fill.selectors_.assign(draft.selectors.begin(), draft.selectors.end());
    fill.joinable_ = fill.joinable_ || draft.terms.for_authorized;
    has_begun(fill, *object);
  }
  fill.room_ = object->inline_size_;
  fill.cost_ = cost_of(*object);
  fill.found_.store(draft.found, std::memory_order_release);
  publish(fill, {*this, *object}, draft.length, Fill::State::streaming);
  return true;
}

bool Shard::append(Fill& fill, std::string_view octets, std::uint64_t most, std::int64_t now_ms) {
  Object& object = *fill.object_.object_;
  std::uint64_t size = object.size_.load(std::memory_order_relaxed);
  const bool keeps = size + octets.size() <= most;
  while (!octets.empty()) {
    if (fill.room_ == 0) {
      const bool passing =
          fill.passing_ || !keeps || !add_extent(fill, size, octets.size(), now_ms);
      if (passing && !add_passing_extent(fill)) return false;
    }
    const bool in_front = fill.last_ == nullptr;
    char* piece = in_front ? const_cast<char*>(object.inline_body()) : fill.last_->data();
    const std::uint64_t piece_size = in_front ? object.inline_size_ : fill.last_->size;
    const std::size_t n = std::min<std::uint64_t>(fill.room_, octets.size());
    std::memcpy(piece + (piece_size - fill.room_), octets.data(), n);
    fill.room_ -= n;
    size += n;
    octets.remove_prefix(n);
  }
  if (!keeps && !fill.passing_) pass_through(fill);
  object.size_.store(size, std::memory_order_release);
  fill.grown();
  return true;
}

// For what comes behind `size` octets, of which so many are here.
bool Shard::add_extent(Fill& fill, std::uint64_t size, std::uint64_t here, std::int64_t now_ms) {
  const std::uint64_t length = fill.length();
  const bool declared = length != Fill::kUnknown && size < length;
  const std::uint64_t wanted =
      std::min(declared ? length - size : std::max({here, size, kLeastExtent}), kMostExtent);
  const std::uint64_t least = std::min(wanted, std::max(kLeastPiece, wanted / kMostPieces));
  std::span<char> piece;
  {
    const std::unique_lock lock(mutex_);
    piece = take_up_to(sizeof(Extent) + wanted, sizeof(Extent) + least, now_ms);
    if (piece.empty()) ++counted_.rejected;
  }
  if (piece.empty()) return false;
  fill.cost_ += Arena::cost(piece.size());
  link(fill, *new (piece.data()) Extent, piece.size() - sizeof(Extent));
  return true;
}

// What is not kept any more only passes through, beside the arena.
bool Shard::add_passing_extent(Fill& fill) {
  constexpr std::size_t kSize = 64ULL * 1024;
  if (!fill.passing_) pass_through(fill);
  trim(fill);
  void* piece = std::malloc(sizeof(Extent) + kSize);
  if (piece == nullptr) return false;
  Extent& extent = *new (piece) Extent;
  extent.from_heap = true;
  link(fill, extent, kSize);
  return true;
}

void Shard::link(Fill& fill, Extent& extent, std::uint64_t size) noexcept {
  extent.size = static_cast<std::uint32_t>(size);
  Object& object = *fill.object_.object_;
  (fill.last_ == nullptr ? object.rest_ : fill.last_->next) = &extent;
  fill.last_ = &extent;
  fill.room_ = size;
}

// Nobody who comes now could read it from its beginning.
void Shard::pass_through(Fill& fill) {
  {
    const std::unique_lock lock(mutex_);
    fill.doomed_ = true;
    forget(fill);
  }
  const std::lock_guard lock(fill.mutex_);
  fill.passing_ = true;
}

// Extents that all who read have left behind. A cursor leaves its extent with the first octet of
// the next one.
void Shard::trim(Fill& fill) {
  std::uint64_t slowest = 0;
  {
    const std::lock_guard lock(fill.mutex_);
    slowest = fill.slowest();
  }
  Object& object = *fill.object_.object_;
  const std::unique_lock lock(mutex_);
  while (object.rest_ != fill.last_) {
    Extent& extent = *object.rest_;
    if (object.inline_size_ + fill.trimmed_ + extent.size >= slowest) return;
    fill.trimmed_ += extent.size;
    object.rest_ = extent.next;
    free(extent);
  }
}

bool Shard::complete(Fill& fill, std::size_t variants) {
  Object& object = *fill.object_.object_;
  const std::uint64_t size = object.size_.load(std::memory_order_relaxed);
  bool kept = false;
  {
    const std::unique_lock lock(mutex_);
    if (fill.last_ != nullptr && !fill.last_->from_heap && fill.room_ > 0) {
      const std::uint64_t used = fill.last_->size - fill.room_;
      fill.cost_ -= Arena::cost(sizeof(Extent) + fill.last_->size);
      arena_.shrink(fill.last_, sizeof(Extent) + used);
      fill.cost_ += Arena::cost(sizeof(Extent) + used);
      fill.room_ = 0;
    }
    kept = keep(fill, object, fill.cost_, variants);
  }
  fill.length_.store(size, std::memory_order_release);
  fill.become(Fill::State::done);
  return kept;
}

// The object is found from now on in the place of what answered the same, unless it was purged
// while it came.
bool Shard::keep(Fill& fill, Object& object, std::uint64_t cost, std::size_t variants) {
  if (fill.doomed_) {
    give_up(fill);
    return false;
  }
  forget(fill);
  if (fill.softened_) object.make_stale();
  if (is_outrun(fill, object)) return false;
  std::size_t count = 1;
  each_of(fill.hash_, fill.key_, [&](Object& other) {
    if (other.is_marker() || other.selectors() == object.selectors()) {
      unlink(other);
      drop(other);
    } else if (++count > variants) {
      remove(other, EvictionReason::size);
    }
  });
  insert(object, fill.hash_, cost);
  return true;
}

// Of two that were fetched at once the later answer stays, whichever is done first.
bool Shard::is_outrun(const Fill& fill, const Object& object) {
  bool is = false;
  each_of(fill.hash_, fill.key_, [&](const Object& other) {
    is |= !other.is_marker() && other.selectors() == object.selectors() &&
          other.terms_.received_ms > object.terms_.received_ms;
  });
  return is;
}

bool Shard::confirm(Fill& fill, const ObjectRef& old, const Draft& draft, std::size_t variants,
                    std::int64_t now_ms) {
  fill.revalidated_.store(true, std::memory_order_release);
  ObjectRef confirmed = old;
  bool kept = false;
  {
    const std::unique_lock lock(mutex_);
    if (Object* object = make(fill, draft, 0, now_ms)) {
      Object& owner = old->borrows_ ? *old->owner_ : *old.object_;
      owner.references_.fetch_add(1, std::memory_order_relaxed);
      object->borrows_ = true;
      object->owner_ = &owner;
      has_begun(fill, *object);
      kept = keep(fill, *object, cost_of(*object) + owner.node_.size(), variants);
      confirmed = {*this, *object};
    } else {
      ++counted_.rejected;
      give_up(fill);
    }
  }
  const std::uint64_t size = confirmed->size();
  publish(fill, std::move(confirmed), size, Fill::State::done);
  return kept;
}

void Shard::pass(Fill& fill, std::int64_t remember_ms, std::int64_t now_ms) {
  const std::unique_lock lock(mutex_);
  if (remember_ms <= 0 || fill.doomed_) return give_up(fill);
  forget(fill);
  Draft marker;
  marker.status = 0;
  marker.terms.received_ms = now_ms;
  marker.terms.lifetime = static_cast<std::uint32_t>((remember_ms + 999) / 1000);
  Object* object = make(fill, marker, 0, now_ms);
  if (object == nullptr) return;
  each_of(fill.hash_, fill.key_, [&](Object& other) {
    if (!other.is_marker()) return;
    unlink(other);
    drop(other);
  });
  insert(*object, fill.hash_, cost_of(*object));
  drop(*object);  // the count that make() gave: the index has its own
}

std::shared_ptr<Fill> Shard::beside(const Fill& fill) {
  auto own = std::make_shared<Fill>(fill.hash_, fill.key_, fill.generation_);
  own->beside_ = true;
  const std::unique_lock lock(mutex_);
  own->doomed_ = fill.doomed_;
  own->softened_ = fill.softened_;
  own->rules_ = fill.rules_;
  own->place_ = fills_.emplace(fill.hash_, own);
  return own;
}

void Shard::leave(Fill& fill) {
  const std::unique_lock lock(mutex_);
  give_up(fill);
}

// It told nothing: if it was to see whether the answer can be shared by now, another one does.
void Shard::give_up(Fill& fill) {
  forget(fill);
  each_of(fill.hash_, fill.key_, [](Object& object) {
    if (object.is_marker()) object.release_claim();
  });
}

// The fill itself lives on: whoever calls this holds it.
void Shard::forget(Fill& fill) noexcept {
  if (fill.place_) fills_.erase(*std::exchange(fill.place_, std::nullopt));
}

// --- invalidation, purge, tidying ---------------------------------------------------------------

std::size_t Shard::invalidate(std::uint64_t hash, std::string_view key) {
  std::size_t count = 0;
  const std::unique_lock lock(mutex_);
  for (const auto& [of, fill] : fills_of(hash))
    if (fill->key_ == key) fill->doomed_ = true;
  each_of(hash, key, [&](Object& object) {
    count += object.is_marker() ? 0 : 1;
    remove(object, EvictionReason::invalidated);
  });
  return count;
}

void Shard::add_rule(const PurgeRule& rule) {
  const std::unique_lock lock(mutex_);
  rules_.push_back(rule);
  for (const auto& [of, fill] : fills_) purge_fill(*fill, rule);
}

std::size_t Shard::apply_rule(const PurgeRule& rule) {
  constexpr std::size_t kAtOnce = 1024;  // buckets, so that requests are not held up
  std::size_t count = 0;
  for (std::size_t at = 0; at < buckets_.size(); at += kAtOnce) {
    const std::unique_lock lock(mutex_);
    const std::size_t end = std::min(at + kAtOnce, buckets_.size());
    for (std::size_t i = at; i < end; ++i) count += purge_bucket(buckets_[i], rule);
  }
  const std::unique_lock lock(mutex_);
  std::erase_if(rules_, [&](const PurgeRule& one) { return one.generation == rule.generation; });
  return count;
}

std::size_t Shard::purge_key(const PurgeRule& rule, std::uint64_t hash) {
  const std::unique_lock lock(mutex_);
  for (const auto& [of, fill] : fills_of(hash)) purge_fill(*fill, rule);
  return purge_bucket(bucket(hash), rule);
}

std::size_t Shard::purge_bucket(Object* first, const PurgeRule& rule) noexcept {
  std::size_t count = 0;
  for (Object* object = first; object != nullptr;) {
    Object* const next = object->next_;
    if (object->generation_ < rule.generation && rule.names(*object)) {
      count += object->is_marker() ? 0 : 1;
      if (rule.soft) {
        object->make_stale();
      } else {
        remove(*object, EvictionReason::purged);
      }
    }
    object = next;
  }
  return count;
}

void Shard::purge_fill(Fill& fill, const PurgeRule& rule) {
  if (rule.scope == PurgeScope::tag && fill.begun_ == nullptr) {
    fill.rules_.push_back(rule);
    return;
  }
  const bool named =
      rule.scope == PurgeScope::tag ? rule.names(*fill.begun_) : rule.names_key(fill.key_);
  if (named) (rule.soft ? fill.softened_ : fill.doomed_) = true;
}

void Shard::has_begun(Fill& fill, const Object& object) {
  fill.begun_ = &object;
  for (const PurgeRule& rule : std::exchange(fill.rules_, {})) purge_fill(fill, rule);
}

void Shard::sweep(std::size_t turn, std::int64_t now_ms) {
  constexpr std::size_t kAtOnce = 256;
  const std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < std::min(kAtOnce, buckets_.size()); ++i) {
    for (Object* object = buckets_[(turn * kAtOnce + i) % buckets_.size()]; object != nullptr;) {
      Object* const next = object->next_;
      if (is_spent(object->terms_, now_ms)) remove(*object, EvictionReason::expired);
      object = next;
    }
  }
}

void Shard::add_to(Stats& stats) const {
  const std::shared_lock lock(mutex_);
  stats.bytes += arena_.used() + buckets_.size() * sizeof(Object*) + eviction_.memory();
  stats.objects += objects_;
  for (std::size_t i = 0; i < stats.evictions.size(); ++i)
    stats.evictions[i] += counted_.evictions[i];
  stats.rejected += counted_.rejected;
  for (std::size_t i = 0; i < stats.eviction_ages.size(); ++i)
    stats.eviction_ages[i] += counted_.eviction_ages[i];
  stats.eviction_age_sum += counted_.eviction_age_sum;
}

void ObjectRef::destroy() noexcept { shard_->destroy(*object_); }

}  // namespace clockwise::cache
