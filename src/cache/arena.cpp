#include "cache/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

#include "base/sanitizer.h"

namespace clockwise::cache {
namespace {

std::size_t whole_pages(std::size_t size) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(size, 1) + page - 1) / page * page;
}

}  // namespace

Arena::Arena(std::size_t size) {
  // The last unit is the sentinel.
  if (size > (std::size_t{kMost} + 1) * kUnit) throw std::bad_alloc();
  size_ = whole_pages(size);
  void* const memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  pieces_ = static_cast<Piece*>(memory);
  first_.fill(kNone);

  const auto all = static_cast<Count>(size_ / kUnit - 1);
  pieces_[0].size = all & kMost;
  // Never free, so that nothing is merged beyond the end.
  pieces_[all] = {.size = 0, .is_free = 0, .size_before = all, .next = kNone, .previous = kNone};
  poison(pieces_ + 1, (all - 1) * kUnit);
  enlist(pieces_[0]);
}

Arena::~Arena() {
  unpoison(pieces_, size_);
  ::munmap(pieces_, size_);
}

std::size_t Arena::size() const noexcept { return size_; }

std::size_t Arena::used() const noexcept { return used_; }

std::size_t Arena::cost(std::size_t size) noexcept {
  if (size > SIZE_MAX - kHeader - kUnit) return SIZE_MAX;
  return (size + kHeader + kUnit - 1) / kUnit * kUnit;
}

void* Arena::take(std::size_t size) noexcept {
  const std::size_t units = cost(size) / kUnit;
  if (units > kMost) return nullptr;
  Piece* const piece = fitting(static_cast<Count>(units));
  return piece == nullptr ? nullptr : lend(*piece, size);
}

std::span<char> Arena::take_up_to(std::size_t size, std::size_t least) noexcept {
  assert(least <= size);
  if (size == 0) return {};
  if (void* const whole = take(size)) return {static_cast<char*>(whole), size};
  Piece* const piece = largest();
  if (piece == nullptr || payload_size(*piece) < least) return {};
  const std::size_t all = payload_size(*piece);
  return {static_cast<char*>(lend(*piece, all)), all};
}

void Arena::shrink(void* payload, std::size_t size) noexcept {
  Piece& piece = piece_of(payload);
  assert(!piece.is_free && size <= payload_size(piece));
  poison(static_cast<char*>(payload) + size, payload_size(piece) - size);
  cut(piece, size);
}

void Arena::give_back(void* payload) noexcept {
  Piece& piece = piece_of(payload);
  assert(!piece.is_free);
  used_ -= piece.size * kUnit;
  poison(payload, payload_size(piece));
  release(piece);
}

// Up to 16 units each size has its class; from there on the four digits after the first tell it.
unsigned Arena::class_of(Count size) noexcept {
  const int shift = std::max<int>(std::bit_width(size), 5) - 5;
  return static_cast<unsigned>(shift) * kPerLevel + (size >> shift);
}

Arena::Piece& Arena::piece_of(void* payload) noexcept {
  void* const piece = static_cast<char*>(payload) - kHeader;
  return *static_cast<Piece*>(piece);
}

std::size_t Arena::payload_size(const Piece& piece) noexcept {
  return piece.size * kUnit - kHeader;
}

Arena::Piece* Arena::first_of(unsigned size_class) noexcept {
  const Count first = first_[size_class];
  return first == kNone ? nullptr : pieces_ + first;
}

// Of the least class from this one on that has any.
Arena::Piece* Arena::first_from(unsigned size_class) noexcept {
  const unsigned level = size_class / kPerLevel;
  const std::uint32_t here = classes_[level] & (~0U << size_class % kPerLevel);
  if (here != 0) return first_of(level * kPerLevel + std::countr_zero(here));
  const std::uint32_t above = levels_ & (~0U << (level + 1));
  if (above == 0) return nullptr;
  const unsigned next = std::countr_zero(above);
  return first_of(next * kPerLevel + std::countr_zero(classes_[next]));
}

Arena::Piece* Arena::fitting(Count size) noexcept {
  // The first class in which all are large enough.
  if (Piece* const piece = first_from(class_of(size - 1) + 1)) return piece;
  // Of those that may be, one is looked at: an arena with nothing taken so lends all it has.
  Piece* const piece = first_of(class_of(size));
  return piece != nullptr && piece->size >= size ? piece : nullptr;
}

// Of the largest class: all larger than any of another.
Arena::Piece* Arena::largest() noexcept {
  if (levels_ == 0) return nullptr;
  const unsigned level = std::bit_width(levels_) - 1;
  return first_of(level * kPerLevel + std::bit_width(classes_[level]) - 1);
}

void Arena::enlist(Piece& piece) noexcept {
  const unsigned size_class = class_of(piece.size);
  const auto place = static_cast<Count>(&piece - pieces_);
  piece.is_free = 1;
  piece.next = first_[size_class];
  piece.previous = kNone;
  if (piece.next != kNone) pieces_[piece.next].previous = place;
  first_[size_class] = place;
  const unsigned level = size_class / kPerLevel;
  levels_ |= 1U << level;
  classes_[level] = static_cast<std::uint16_t>(classes_[level] | 1U << size_class % kPerLevel);
}

void Arena::take_off(Piece& piece) noexcept {
  piece.is_free = 0;
  if (piece.next != kNone) pieces_[piece.next].previous = piece.previous;
  if (piece.previous != kNone) {
    pieces_[piece.previous].next = piece.next;
    return;
  }
  const unsigned size_class = class_of(piece.size);
  first_[size_class] = piece.next;
  if (piece.next != kNone) return;
  const unsigned level = size_class / kPerLevel;
  classes_[level] = static_cast<std::uint16_t>(classes_[level] & ~(1U << size_class % kPerLevel));
  if (classes_[level] == 0) levels_ &= ~(1U << level);
}

void* Arena::lend(Piece& piece, std::size_t size) noexcept {
  take_off(piece);
  used_ += piece.size * kUnit;
  poison(payload_of(piece), kUnit - kHeader);
  cut(piece, size);
  unpoison(payload_of(piece), size);
  return payload_of(piece);
}

// What a payload of `size` octets does not need becomes a free piece.
void Arena::cut(Piece& piece, std::size_t size) noexcept {
  const auto kept = static_cast<Count>(cost(size) / kUnit);
  if (kept == piece.size) return;
  const Count more = piece.size - kept;
  piece.size = kept & kMost;
  Piece& rest = after(piece);
  unpoison(&rest, kUnit);
  rest = {
      .size = more & kMost, .is_free = 0, .size_before = kept, .next = kNone, .previous = kNone};
  used_ -= more * kUnit;
  release(rest);
}

// Free neighbours become one piece. REQUIRES: its payload is poisoned.
void Arena::release(Piece& piece) noexcept {
  Piece* whole = &piece;
  unpoison(whole, kUnit);
  if (Piece& next = after(piece); next.is_free) {
    take_off(next);
    merge(piece, next);
  }
  if (Piece& before = *(whole - piece.size_before); before.is_free) {
    take_off(before);
    merge(before, piece);
    whole = &before;
  }
  after(*whole).size_before = whole->size;
  enlist(*whole);
}

void Arena::merge(Piece& piece, Piece& next) noexcept {
  piece.size = (piece.size + next.size) & kMost;
  poison(&next, kUnit);
}

}  // namespace clockwise::cache
