// The memory of one shard of the store: a fixed range of addresses, cut into pieces of any size.
//
// All that a shard holds lies in its arena, so that the bound is the arena's size and no account
// can be wrong. Pieces carry their sizes at both ends; free neighbours become one at once, and free
// pieces stand in lists by size (two-level segregated fit, Masmano et al., "TLSF: a new dynamic
// memory allocator for real-time systems", ECRTS 2004), so taking and giving back cost the same
// however full it is. Memory is touched only once it is used. One owner at a time: whoever holds
// the lock of the shard.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace clockwise::cache {

class Arena {
 public:
  // `size` octets, rounded to pages, at most 32 GiB. Throws std::bad_alloc where the system has no
  // such range.
  explicit Arena(std::size_t size);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // At least `size` octets, aligned for pointers and 64-bit numbers; null: no free piece is as
  // large.
  [[nodiscard]] void* take(std::size_t size) noexcept;
  // The same, but what there is when that is less, at least `least`; empty: not even that.
  // REQUIRES: least <= size.
  [[nodiscard]] std::span<char> take_up_to(std::size_t size, std::size_t least) noexcept;
  // The piece keeps its first `size` octets. REQUIRES: it has as many.
  void shrink(void* piece, std::size_t size) noexcept;
  void give_back(void* piece) noexcept;

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t used() const noexcept;  // with what the pieces need themselves
  // What a piece of `size` octets costs.
  [[nodiscard]] static std::size_t cost(std::size_t size) noexcept;

 private:
  using Count = std::uint32_t;  // of units, and where a piece begins

  // How a piece begins; the arena is counted in units of this size. A piece that is taken belongs
  // to its owner from `next` on.
  struct Piece {
    Count size : 31;  // with this header
    Count is_free : 1;
    Count size_before;     // of the piece before it; 0: it is the first
    Count next, previous;  // in the list of its class, while it is free
  };
  static constexpr std::size_t kUnit = sizeof(Piece);
  static constexpr std::size_t kHeader = offsetof(Piece, next);
  // Units of a piece; as a mask it shows the compiler that the value fits.
  static constexpr Count kMost = (Count{1} << 31) - 1;
  static constexpr Count kNone = ~Count{0};

  // Free pieces of one class differ by less than a sixteenth: a power of two is a level, and each
  // level has 16 classes.
  static constexpr unsigned kPerLevel = 16;
  static constexpr unsigned kClasses = 28 * kPerLevel;

  [[nodiscard]] static unsigned class_of(Count size) noexcept;
  [[nodiscard]] static Piece& piece_of(void* payload) noexcept;
  [[nodiscard]] static void* payload_of(Piece& piece) noexcept { return &piece.next; }
  [[nodiscard]] static std::size_t payload_size(const Piece& piece) noexcept;
  [[nodiscard]] static Piece& after(Piece& piece) noexcept { return *(&piece + piece.size); }

  [[nodiscard]] Piece* first_of(unsigned size_class) noexcept;
  [[nodiscard]] Piece* first_from(unsigned size_class) noexcept;
  [[nodiscard]] Piece* fitting(Count size) noexcept;
  [[nodiscard]] Piece* largest() noexcept;
  void enlist(Piece& piece) noexcept;
  void take_off(Piece& piece) noexcept;

  [[nodiscard]] void* lend(Piece& piece, std::size_t size) noexcept;
  void cut(Piece& piece, std::size_t size) noexcept;
  void release(Piece& piece) noexcept;
  static void merge(Piece& piece, Piece& next) noexcept;

  std::size_t size_;
  Piece* pieces_;
  std::size_t used_ = 0;
  std::uint32_t levels_ = 0;  // those with a free piece
  // Per level the classes with a free piece. A search may begin behind the last level.
  std::array<std::uint16_t, kClasses / kPerLevel + 1> classes_{};
  std::array<Count, kClasses> first_;
};

}  // namespace clockwise::cache
