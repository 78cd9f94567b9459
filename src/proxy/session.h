// One client connection: reads heads one after another, hands each to an Exchange, and keeps the
// connection for the next.
//
// Life of a session: idle -> head -> exchange -> idle … -> lingering -> gone. While it is idle it
// owns no buffer. One thread; destroyed by the loop once its last operation has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "http/head.h"
#include "io/loop.h"
#include "io/stream.h"
#include "proxy/context.h"
#include "proxy/fetch.h"
#include "proxy/listener.h"

namespace clockwise::proxy {

class Session final : public io::Stream::Owner,
                      public Client,
                      public io::InSlabs,
                      io::Deadlines::Node {
 public:
  Session(Listener& listener, int family, int descriptor, std::string_view client_ip, bool counted);
  // Without a client, for one fetch on behalf of `client_ip`: see start_fetch().
  Session(Listener& listener, std::string_view client_ip, bool trusted);
  ~Session() override = default;

  void start() override;
  // `request`: a whole head as a client would send it.
  void start_fetch(std::string_view request, Fetch fetch);
  // Of a fetch: another head in its place.
  void put_request(std::string_view request);
  void drain() override;
  void drop() override;
  bool close_if_unused() override;

  // --- for the exchange under way ---
  [[nodiscard]] io::Stream& client() noexcept { return *client_; }
  [[nodiscard]] Listener& listener() noexcept { return listener_; }
  [[nodiscard]] bool trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool has_client() const noexcept override { return has_client_; }
  // Whether another request may follow the one under way.
  [[nodiscard]] bool may_go_on() const noexcept {
    const std::uint32_t limit = listener_.config().limits.requests;
    return !listener_.draining() && (limit == 0 || requests_ < limit);
  }
  [[nodiscard]] std::uint64_t head_started_ns() const noexcept { return head_started_ns_; }
  [[nodiscard]] std::uint64_t waits_since_ns() const noexcept override { return head_started_ns_; }
  void set_deadline(io::Milliseconds at) noexcept;
  // The answer is out. `keep`: the connection goes on; `clean`: the request was read to its end.
  void exchange_done(bool keep, bool clean);
  // Nothing more can be done for this client; `as_error`: it must not take what it got for a whole.
  void exchange_cut(bool as_error);

  [[nodiscard]] bool quiet() const noexcept override { return client_->quiet(); }

 private:
  enum class State : std::uint8_t { idle, head, exchange, lingering, gone };

  void on_read(const io::error_code& error, std::size_t n) override;
  void on_readable(const io::error_code& error) override;
  void on_writable(const io::error_code& error) override;
  void on_connected(const io::error_code&) override {}
  void on_deadline() override;

  void read_head();
  [[nodiscard]] bool only_blank_lines();
  void wait_for_more_head();
  void wait_for_request();
  void wait_for_octets(io::Milliseconds patience);
  void go_on_next_turn();
  void linger();
  void drain_lingering(const io::error_code& error);
  void leave(bool as_error);
  void become(State to) noexcept;
  void now_idle() noexcept;

  Listener& listener_;
  std::unique_ptr<io::Stream> client_;
  Exchange* exchange_ = nullptr;
  std::uint64_t head_started_ns_ = 0;  // or, without a request: since when it waits or lingers
  std::size_t scanned_ = 0;
  std::uint32_t requests_ = 0;  // begun on this connection
  io::Milliseconds linger_until_ = 0;
  State state_ = State::idle;
  bool trusted_ = false;
  const bool has_client_;
  bool reading_heads_ = false;  // in the loop of read_head()
};

}  // namespace clockwise::proxy
