#include "cache/eviction.h"

#include <algorithm>
#include <bit>

namespace clockwise::cache {
namespace {

constexpr std::uint64_t kSmallShare = 10;  // a tenth, as in the paper

std::uint32_t tag_of(std::uint64_t hash) noexcept {
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(hash), 1);
}

}  // namespace

Eviction::Ghost::Ghost(std::size_t most)
    : slots_(std::bit_ceil(std::max<std::size_t>(most, kWays))),
      most_(static_cast<std::uint32_t>(std::min<std::size_t>(most, UINT32_MAX / 2))) {}

// The upper half of the hash picks the bucket, the lower one is the tag.
Eviction::Ghost::Slot* Eviction::Ghost::bucket(std::uint64_t hash) noexcept {
  return slots_.data() + (hash >> 32) % (slots_.size() / kWays) * kWays;
}

void Eviction::Ghost::add(std::uint64_t hash) noexcept {
  ++turn_;
  Slot* const first = bucket(hash);
  Slot* place = first;
  for (Slot* slot = first; slot != first + kWays; ++slot) {
    if (slot->tag == 0 || slot->tag == tag_of(hash) || is_old(*slot)) {
      place = slot;
      break;
    }
    if (turn_ - slot->turn > turn_ - place->turn) place = slot;
  }
  *place = {tag_of(hash), turn_};
}

bool Eviction::Ghost::take(std::uint64_t hash) noexcept {
  Slot* const first = bucket(hash);
  for (Slot* slot = first; slot != first + kWays; ++slot) {
    if (slot->tag != tag_of(hash)) continue;
    const bool known = !is_old(*slot);
    *slot = {};
    return known;
  }
  return false;
}

std::size_t Eviction::Ghost::memory() const noexcept { return slots_.size() * sizeof(Slot); }

Eviction::Eviction(std::uint64_t capacity, std::size_t ghosts)
    : capacity_(capacity), ghost_(ghosts) {}

std::size_t Eviction::memory() const noexcept { return ghost_.memory(); }

Eviction::Fifo& Eviction::queue_of(const Node& node) noexcept {
  return node.queue_ == Node::Queue::small ? small_ : main_;
}

void Eviction::push(Fifo& fifo, Node::Queue queue, Node& node) noexcept {
  node.queue_ = queue;
  fifo.nodes.push_back(node);
  fifo.octets += node.size_;
  ++nodes_;
}

void Eviction::take_off(Node& node) noexcept {
  Fifo& fifo = queue_of(node);
  fifo.nodes.erase(fifo.nodes.iterator_to(node));
  fifo.octets -= node.size_;
  --nodes_;
  node.queue_ = Node::Queue::none;
}

void Eviction::insert(Node& node, std::uint64_t hash, std::uint32_t size) {
  node.hash_ = hash;
  node.size_ = size;
  node.requests_.store(0, std::memory_order_relaxed);
  // What left longer ago than that would not have stayed anyway.
  ghost_.remember(nodes_);
  if (ghost_.take(hash))
    push(main_, Node::Queue::main, node);
  else
    push(small_, Node::Queue::small, node);
}

void Eviction::resize(Node& node, std::uint32_t size) noexcept {
  Fifo& fifo = queue_of(node);
  fifo.octets = fifo.octets - node.size_ + size;
  node.size_ = size;
}

void Eviction::remove(Node& node) noexcept { take_off(node); }

Eviction::Node* Eviction::next_out() {
  while (!small_.nodes.empty() || !main_.nodes.empty()) {
    const bool small_is_full = small_.octets > capacity_ / kSmallShare;
    Node* const out = (small_is_full && !small_.nodes.empty()) || main_.nodes.empty()
                          ? evict_from_small()
                          : evict_from_main();
    if (out != nullptr) return out;
  }
  return nullptr;
}

// Null: the oldest was asked for and moved on.
Eviction::Node* Eviction::evict_from_small() {
  Node& node = small_.nodes.front();
  take_off(node);
  if (node.requests_.load(std::memory_order_relaxed) > 0) {
    node.requests_.store(0, std::memory_order_relaxed);
    push(main_, Node::Queue::main, node);
    return nullptr;
  }
  ghost_.add(node.hash_);
  return &node;
}

// Null: the oldest was asked for and begins another round.
Eviction::Node* Eviction::evict_from_main() noexcept {
  Node& node = main_.nodes.front();
  take_off(node);
  const std::uint8_t requests = node.requests_.load(std::memory_order_relaxed);
  if (requests > 0) {
    node.requests_.store(requests - 1, std::memory_order_relaxed);
    push(main_, Node::Queue::main, node);
    return nullptr;
  }
  return &node;
}

}  // namespace clockwise::cache
