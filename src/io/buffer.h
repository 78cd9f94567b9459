// Receive buffers that connections borrow while they hold octets, and only then.
//
// A loop keeps its blocks in a last-in-first-out list, so that a busy loop works in the same few
// warm blocks and ten thousand idle connections own none. One thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace clockwise::io {

// Blocks of one size; a larger one (for an unusually long head) comes from the heap and goes back.
class BlockPool {
 public:
  // Holds a 16 KiB answer with its head in one read.
  static constexpr std::uint32_t kBlockSize = 32 * 1024;
  // Blocks kept for reuse; beyond that they go back to the system.
  static constexpr std::size_t kKept = 256;

  BlockPool() { free_.reserve(kKept); }

  [[nodiscard]] char* take(std::uint32_t size) {
    if (size == kBlockSize && !free_.empty()) {
      char* block = free_.back().release();
      free_.pop_back();
      fewest_ = std::min(fewest_, free_.size());
      return block;
    }
    return new char[size];  // not zeroed on purpose
  }
  void give_back(char* block, std::uint32_t size) noexcept {
    std::unique_ptr<char[]> owned(block);
    if (size == kBlockSize && free_.size() < kKept) free_.push_back(std::move(owned));
  }

  // Half of the blocks that nobody has needed since the last call go back to the system.
  void settle() noexcept {
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>((fewest_ + 1) / 2));
    fewest_ = free_.size();
  }

 private:
  std::vector<std::unique_ptr<char[]>> free_;
  std::size_t fewest_ = 0;  // that were free since settle()
};

// Octets received and not yet used up: a window [begin, end) into a borrowed block.
// Invariant: no block when empty and no read is being made; views die with the block.
class Buffer {
 public:
  explicit Buffer(BlockPool& pool) noexcept : pool_(&pool) {}
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::string_view view() const noexcept { return {block_ + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] bool has_block() const noexcept { return block_ != nullptr; }
  [[nodiscard]] char* data() noexcept { return block_ + begin_; }

  // Where the next read may put octets: never empty unless full() says so.
  [[nodiscard]] char* tail() noexcept {
    if (block_ == nullptr) borrow(BlockPool::kBlockSize);
    return block_ + end_;
  }
  [[nodiscard]] std::size_t room() const noexcept {
    return block_ == nullptr ? BlockPool::kBlockSize : capacity_ - end_;
  }
  [[nodiscard]] bool full() const noexcept { return block_ != nullptr && end_ == capacity_; }

  // `n` octets were put at `where`, which was tail() when the read was made. The window may have
  // been emptied since, and with it moved to the front; then it begins where the octets stand.
  void commit(const char* where, std::size_t n) noexcept {
    const auto at = static_cast<std::uint32_t>(where - block_);
    if (empty()) begin_ = at;
    end_ = at + static_cast<std::uint32_t>(n);
  }
  void consume(std::size_t n) noexcept {
    begin_ += static_cast<std::uint32_t>(n);
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void clear() noexcept { begin_ = end_ = 0; }

  // Makes room for a window of at least `size` octets: moves it to the front of the block, or into
  // a larger block. Views into the buffer die.
  void reserve(std::size_t size) {
    if (block_ == nullptr) return borrow(size);
    if (capacity_ - begin_ >= size) return;
    if (capacity_ >= size) {
      std::memmove(block_, block_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      return;
    }
    Buffer larger(*pool_);
    larger.borrow(size);
    std::memcpy(larger.block_, block_ + begin_, end_ - begin_);
    larger.end_ = end_ - begin_;
    swap(larger);
  }

  // Gives the block back; what it held is gone.
  void release() noexcept {
    if (block_ != nullptr) pool_->give_back(block_, capacity_);
    block_ = nullptr;
    begin_ = end_ = capacity_ = 0;
  }

  void swap(Buffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void borrow(std::size_t size) {
    capacity_ =
        size <= BlockPool::kBlockSize ? BlockPool::kBlockSize : static_cast<std::uint32_t>(size);
    block_ = pool_->take(capacity_);
  }

  BlockPool* pool_;
  char* block_ = nullptr;
  std::uint32_t begin_ = 0, end_ = 0, capacity_ = 0;
};

}  // namespace clockwise::io
