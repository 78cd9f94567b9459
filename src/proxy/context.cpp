#include "proxy/context.h"

#include "proxy/exchange.h"
#include "proxy/memcached_command.h"
#include "proxy/memcached_session.h"
#include "proxy/replica_write.h"
#include "proxy/session.h"

namespace clockwise::proxy {

namespace {

// One that was given back, or a new one.
template <class Recycled>
Recycled& take(std::vector<std::unique_ptr<Recycled>>& free, Context& context) {
  if (free.empty()) return *new Recycled(context);
  Recycled* one = free.back().release();
  free.pop_back();
  return *one;
}

}  // namespace

Context::Context(std::size_t worker_index, std::shared_ptr<const Admission> shared,
                 std::uint64_t seed)
    : sessions(sizeof(Session)),
      memcached_sessions(sizeof(MemcachedSession)),
      worker(worker_index),
      admission(std::move(shared)),
      request_ids(seed),
      random_(seed) {
  loop.descriptors = admission->server_descriptors;
}

Context::~Context() = default;

Exchange& Context::take_exchange() {
  loop.gather.urgent_begun();
  return take(free_, *this);
}

void Context::give_back(Exchange& exchange) {
  loop.gather.urgent_ended();
  constexpr std::size_t kKept = 256;
  std::unique_ptr<Exchange> owned(&exchange);
  if (free_.size() < kKept) free_.push_back(std::move(owned));
}

MemcachedCommand& Context::take_command() { return take(free_commands_, *this); }

void Context::give_back(MemcachedCommand& command) {
  constexpr std::size_t kKept = 1024;
  std::unique_ptr<MemcachedCommand> owned(&command);
  owned->let_go();
  if (free_commands_.size() < kKept && owned->forget_memory())
    free_commands_.push_back(std::move(owned));
}

ReplicaWrite& Context::take_write() { return take(free_writes_, *this); }

void Context::give_back(ReplicaWrite& write) {
  constexpr std::size_t kKept = 1024;
  std::unique_ptr<ReplicaWrite> owned(&write);
  if (free_writes_.size() < kKept) free_writes_.push_back(std::move(owned));
}

void Context::resume_memcached() {
  decltype(memcached_waiting) waiting;
  waiting.swap(memcached_waiting);
  while (!waiting.empty())
    static_cast<MemcachedSession&>(static_cast<Client&>(waiting.front())).resume();
}

std::string_view Context::date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    date_ = http::Date(now);
  }
  return date_.text();
}

}  // namespace clockwise::proxy
