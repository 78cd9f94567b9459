#include "proxy/context.h"

#include "proxy/exchange.h"
#include "proxy/session.h"

namespace clockwise::proxy {

Context::Context(std::size_t worker_index, std::shared_ptr<const Admission> shared,
                 std::uint64_t seed)
    : sessions(sizeof(Session)),
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

std::string_view Context::date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    date_ = http::Date(now);
  }
  return date_.text();
}

}  // namespace clockwise::proxy
