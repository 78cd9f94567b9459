#include "proxy/context.h"

#include "proxy/exchange.h"
#include "proxy/memcached_command.h"
#include "proxy/memcached_session.h"
#include "proxy/replica_write.h"
#include "proxy/session.h"

namespace clockwise::proxy {

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
  if (free_.empty()) return *new Exchange(*this);
  Exchange* exchange = free_.back().release();
  free_.pop_back();
  return *exchange;
}

void Context::give_back(Exchange& exchange) {
  constexpr std::size_t kKept = 256;
  std::unique_ptr<Exchange> owned(&exchange);
  if (free_.size() < kKept) free_.push_back(std::move(owned));
}

MemcachedCommand& Context::take_command() {
  if (free_commands_.empty()) return *new MemcachedCommand(*this);
  MemcachedCommand* command = free_commands_.back().release();
  free_commands_.pop_back();
  return *command;
}

void Context::give_back(MemcachedCommand& command) {
  constexpr std::size_t kKept = 1024;
  std::unique_ptr<MemcachedCommand> owned(&command);
  owned->let_go();
  if (free_commands_.size() < kKept && owned->forget_memory())
    free_commands_.push_back(std::move(owned));
}

ReplicaWrite& Context::take_write() {
  if (free_writes_.empty()) return *new ReplicaWrite(*this);
  ReplicaWrite* write = free_writes_.back().release();
  free_writes_.pop_back();
  return *write;
}

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
