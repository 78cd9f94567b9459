// One stored answer: what it answers, its head, and its body in the arena of its shard.
//
// What it says never changes once it is there, so that it is read without a lock; a body that is
// still coming only grows. Readers hold it by an ObjectRef, which keeps it in place however soon it
// is evicted, purged or replaced.
//
// In memory: the object, its texts, and as much of the body as came with them; what the body has
// beyond that stands in extents. A small answer is one piece of memory and one slice of a write.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cache/eviction.h"
#include "cache/policy.h"

namespace clockwise::cache {

class Shard;

// A piece of a body after the first.
struct Extent {
  Extent* next = nullptr;
  std::uint32_t size = 0;  // octets that fit behind this
  bool from_heap = false;  // not in the arena

  [[nodiscard]] char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
  [[nodiscard]] const char* data() const noexcept {
    return reinterpret_cast<const char*>(this + 1);
  }
};

class Object {
 public:
  [[nodiscard]] std::string_view key() const noexcept { return {text(), key_size_}; }
  [[nodiscard]] std::uint16_t status() const noexcept { return status_; }
  // The field lines as they are sent, each with its CRLF, without framing and the blank line.
  [[nodiscard]] std::string_view head() const noexcept { return {text() + key_size_, head_size_}; }
  // The value of the first line `name` (lower case) of the head; empty where there is none.
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  // What the request said to the fields of Vary, packed (cache/vary.h).
  [[nodiscard]] std::string_view selectors() const noexcept {
    return {text() + key_size_ + head_size_, selectors_size_};
  }
  // The tags, separated by blanks.
  [[nodiscard]] std::string_view tags() const noexcept {
    return {text() + key_size_ + head_size_ + selectors_size_, tags_size_};
  }
  [[nodiscard]] const Terms& terms() const noexcept { return terms_; }
  // No answer, but the knowledge that what answers the key cannot be shared.
  [[nodiscard]] bool is_marker() const noexcept { return status_ == 0; }
  // Purged softly: stale, whatever its terms say.
  [[nodiscard]] bool made_stale() const noexcept {
    return (marks_.load(std::memory_order_relaxed) & kMadeStale) != 0;
  }

  // Octets of the body that can be read now; all of them once its fill is done.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return body().size_.load(std::memory_order_acquire);
  }

  // A request was answered with it.
  void touch() const noexcept { node_.touch(); }
  // True for one caller: a refresh ahead of time, or a look whether a marker still holds, is wanted
  // once for each object.
  [[nodiscard]] bool claim_refresh() const noexcept {
    return (marks_.load(std::memory_order_relaxed) & kRefreshed) == 0 &&
           (marks_.fetch_or(kRefreshed, std::memory_order_relaxed) & kRefreshed) == 0;
  }

 private:
  friend class Cursor;
  friend class ObjectRef;
  friend class Shard;

  static constexpr std::uint8_t kMadeStale = 1, kRefreshed = 2;

  Object() = default;

  void release_claim() const noexcept {
    marks_.fetch_and(static_cast<std::uint8_t>(~kRefreshed), std::memory_order_relaxed);
  }
  void make_stale() const noexcept { marks_.fetch_or(kMadeStale, std::memory_order_relaxed); }
  [[nodiscard]] const char* text() const noexcept {
    return reinterpret_cast<const char*>(this + 1);
  }
  [[nodiscard]] const char* inline_body() const noexcept {
    return text() + key_size_ + head_size_ + selectors_size_ + tags_size_;
  }
  // Whose body it is: an answer that the origin has confirmed has a head of its own only.
  [[nodiscard]] const Object& body() const noexcept { return borrows_ ? *owner_ : *this; }

  // What these two leave of their last words is filled by what stands behind them.
  [[no_unique_address]] mutable Eviction::Node node_;
  bool borrows_ = false;
  mutable std::atomic<std::uint8_t> marks_{0};
  Object* next_ = nullptr;  // in its bucket, newer ones first
  [[no_unique_address]] Terms terms_;
  std::uint16_t status_ = 0;
  std::uint16_t key_size_ = 0, head_size_ = 0, selectors_size_ = 0, tags_size_ = 0;
  std::uint32_t generation_ = 0;  // of the store, when its fetch began
  std::atomic<std::uint32_t> references_{1};
  std::uint32_t inline_size_ = 0;  // octets that fit behind the texts
  std::atomic<std::uint64_t> size_{0};
  union {
    Extent* rest_ = nullptr;  // after the inline part
    Object* owner_;           // held, where it borrows its body
  };
};

// What each answer costs beside its texts and body; the cache is for small ones too.
static_assert(sizeof(Object) <= 104);

// Shared ownership of an object. Any thread; the store must outlive it.
class ObjectRef {
 public:
  ObjectRef() noexcept = default;
  ObjectRef(const ObjectRef& other) noexcept : shard_(other.shard_), object_(other.object_) {
    if (object_ != nullptr) object_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  ObjectRef(ObjectRef&& other) noexcept
      : shard_(other.shard_), object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    std::swap(shard_, other.shard_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjectRef() { reset(); }
  void reset() noexcept {
    if (object_ == nullptr) return;
    if (object_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
    object_ = nullptr;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] const Object& operator*() const noexcept { return *object_; }
  [[nodiscard]] const Object* operator->() const noexcept { return object_; }
  friend bool operator==(const ObjectRef& a, const ObjectRef& b) noexcept {
    return a.object_ == b.object_;
  }

 private:
  friend class Shard;
  // Takes over one count.
  ObjectRef(Shard& shard, Object& object) noexcept : shard_(&shard), object_(&object) {}
  void destroy() noexcept;

  Shard* shard_ = nullptr;
  Object* object_ = nullptr;
};

// A place in the body of an object that somebody holds.
class Cursor {
 public:
  Cursor() noexcept = default;
  // REQUIRES: offset <= object.size().
  Cursor(const Object& object, std::uint64_t offset) noexcept : object_(&object.body()) {
    advance(offset);
  }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  // The octets from here up to `end` that stand one after another; empty at `end`.
  // REQUIRES: end <= object.size().
  [[nodiscard]] std::string_view run(std::uint64_t end) noexcept;
  // REQUIRES: so many octets are there.
  void advance(std::uint64_t n) noexcept;

 private:
  [[nodiscard]] std::uint64_t piece_size() const noexcept {
    return extent_ == nullptr ? object_->inline_size_ : extent_->size;
  }
  void next_piece() noexcept {
    at_ = 0;
    extent_ = extent_ == nullptr ? object_->rest_ : extent_->next;
  }

  const Object* object_ = nullptr;  // that has the body
  const Extent* extent_ = nullptr;  // null: in the inline part
  std::uint64_t at_ = 0;            // in that piece
  std::uint64_t offset_ = 0;
};

// A piece that is used up is left only when there is more: until then its successor may not be
// linked yet.
inline std::string_view Cursor::run(std::uint64_t end) noexcept {
  if (offset_ >= end) return {};
  while (at_ == piece_size()) next_piece();
  const char* const begin = extent_ == nullptr ? object_->inline_body() : extent_->data();
  return {begin + at_, static_cast<std::size_t>(std::min(end - offset_, piece_size() - at_))};
}

inline void Cursor::advance(std::uint64_t n) noexcept {
  offset_ += n;
  while (n > piece_size() - at_) {
    n -= piece_size() - at_;
    next_piece();
  }
  at_ += n;
}

}  // namespace clockwise::cache
