// Memory for many objects of one size, in chunks that hold nothing else.
//
// What a rush of connections leaves behind is holes between objects that live on, and the system
// gets nothing back. Here a chunk goes back as soon as its last object is gone. One thread; must
// outlive its objects.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/sanitizer.h"

namespace clockwise::io {

class Slabs {
 public:
  explicit Slabs(std::size_t object_size) noexcept
      : object_size_((std::max(object_size, sizeof(Slot)) + kAlignment - 1) / kAlignment *
                     kAlignment) {}
  ~Slabs() { open_.clear_and_dispose(&Slabs::free_chunk); }
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  [[nodiscard]] void* take() {
    if (open_.empty()) open_.push_front(new_chunk());
    Chunk& chunk = open_.front();
    Slot* slot = chunk.free;
    if (slot != nullptr) {
      chunk.free = slot->next;
    } else {
      slot = reinterpret_cast<Slot*>(chunk.fresh);
      chunk.fresh += object_size_;
    }
    ++chunk.used;
    if (chunk.free == nullptr && chunk.fresh + object_size_ > chunk.end()) open_.pop_front();
    return slot;
  }

  static void give_back(void* object) noexcept {
    // A chunk begins at a multiple of its size.
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    auto& chunk = *reinterpret_cast<Chunk*>(address & ~std::uintptr_t{kChunkSize - 1});
    auto* slot = static_cast<Slot*>(object);
    slot->next = chunk.free;
    chunk.free = slot;
    Slabs& home = *chunk.home;
    if (!chunk.is_linked()) home.open_.push_front(chunk);
    // One chunk stays, so that a single connection that comes and goes costs no allocation.
    if (--chunk.used > 0 || &home.open_.front() == &home.open_.back()) return;
    home.open_.erase_and_dispose(home.open_.iterator_to(chunk), &Slabs::free_chunk);
  }

 private:
  static constexpr std::size_t kChunkSize = 32 * 1024;
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);

  struct Slot {
    Slot* next;
  };
  struct alignas(kAlignment) Chunk : boost::intrusive::list_base_hook<> {
    Slabs* home = nullptr;
    Slot* free = nullptr;   // given back
    char* fresh = nullptr;  // from here on never used
    std::uint32_t used = 0;

    [[nodiscard]] char* end() noexcept { return reinterpret_cast<char*>(this) + kChunkSize; }
  };

  [[nodiscard]] Chunk& new_chunk() {
    void* memory = std::aligned_alloc(kChunkSize, kChunkSize);
    if (memory == nullptr) throw std::bad_alloc();
    auto* chunk = new (memory) Chunk;
    chunk->home = this;
    chunk->fresh = reinterpret_cast<char*>(chunk + 1);
    return *chunk;
  }
  static void free_chunk(Chunk* chunk) noexcept {
    chunk->~Chunk();
    std::free(chunk);
  }

  const std::size_t object_size_;
  // Chunks with a free place.
  boost::intrusive::list<Chunk, boost::intrusive::constant_time_size<false>> open_;
};

// Gives a class that derives from it the operators for `new (slabs) T(…)` and `delete`.
class InSlabs {
 public:
#if CLOCKWISE_ADDRESS_SANITIZER
  // Where every use after the end is to be seen, each object has memory of its own.
  static void* operator new(std::size_t size, Slabs&) { return ::operator new(size); }
  static void operator delete(void* object, Slabs&) noexcept { ::operator delete(object); }
  static void operator delete(void* object) noexcept { ::operator delete(object); }
#else
  static void* operator new(std::size_t, Slabs& slabs) { return slabs.take(); }
  static void operator delete(void* object, Slabs&) noexcept { Slabs::give_back(object); }
  static void operator delete(void* object) noexcept { Slabs::give_back(object); }
#endif
};

}  // namespace clockwise::io
