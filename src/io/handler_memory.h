// Memory for the one operation a stream has under way in a direction, so that starting it reaches
// no allocator. Asio asks for it through the handler's associated allocator.
#pragma once

#include <cstddef>
#include <new>

namespace clockwise::io {

template <std::size_t Size>
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(std::size_t size) {
    if (!in_use_ && size <= Size) {
      in_use_ = true;
      return storage_;
    }
    return ::operator new(size);
  }
  void deallocate(void* p) noexcept {
    if (p == storage_) {
      in_use_ = false;
    } else {
      ::operator delete(p);
    }
  }

 private:
  alignas(std::max_align_t) unsigned char storage_[Size];
  bool in_use_ = false;
};

template <class T, class Memory>
class HandlerAllocator {
 public:
  using value_type = T;
  template <class U>
  struct rebind {
    using other = HandlerAllocator<U, Memory>;
  };

  explicit HandlerAllocator(Memory& memory) noexcept : memory_(&memory) {}
  template <class U>
  HandlerAllocator(const HandlerAllocator<U, Memory>& other) noexcept : memory_(other.memory_) {}

  T* allocate(std::size_t n) { return static_cast<T*>(memory_->allocate(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { memory_->deallocate(p); }

  friend bool operator==(const HandlerAllocator& a, const HandlerAllocator& b) noexcept {
    return a.memory_ == b.memory_;
  }

 private:
  template <class, class>
  friend class HandlerAllocator;
  Memory* memory_;
};

}  // namespace clockwise::io
