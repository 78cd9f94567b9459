// One client that speaks memcached: commands in, answers out in their order.
//
// Reads what is there, begins every command that is whole, and sends all answers of a turn in one
// write. While too much is unanswered or not taken, nothing more is read: a slow server or a slow
// client holds back this connection alone. One thread.
#pragma once

#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/slabs.h"
#include "io/stream.h"
#include "memcached/command.h"
#include "proxy/client.h"
#include "proxy/listener.h"
#include "proxy/memcached_command.h"

namespace clockwise::proxy {

class MemcachedSession final : public io::Stream::Owner,
                               public Client,
                               public io::InSlabs,
                               io::Deadlines::Node {
 public:
  MemcachedSession(Listener& listener, int family, int descriptor, std::string_view client_ip,
                   bool counted);
  ~MemcachedSession() override;

  void start() override;
  void drain() override;
  void drop() override;
  bool close_if_unused() override;
  [[nodiscard]] std::uint64_t waits_since_ns() const noexcept override { return waits_since_ns_; }
  [[nodiscard]] bool quiet() const noexcept override { return client_->quiet(); }

  // --- for its commands
  [[nodiscard]] Listener& listener() noexcept { return listener_; }
  void command_done();
  // "VERSION …", of the oldest server.
  [[nodiscard]] std::string_view version();
  [[nodiscard]] std::string_view stats(std::string_view arguments);

 private:
  using Commands = boost::intrusive::slist<MemcachedCommand, boost::intrusive::cache_last<true>,
                                           boost::intrusive::constant_time_size<false>>;

  void on_read(const io::error_code& error, std::size_t n) override;
  void on_readable(const io::error_code& error) override;
  void on_writable(const io::error_code& error) override;
  void on_connected(const io::error_code&) override {}
  void on_deadline() override;

  void read_commands();
  [[nodiscard]] bool read_command();
  [[nodiscard]] bool begin(const memcached::Command& command);
  void make_room(std::size_t size);
  void refuse(const memcached::Command& command, const memcached::Refusal& refusal);
  [[nodiscard]] bool skip_data();
  [[nodiscard]] bool has_room() const noexcept;
  MemcachedCommand& append();
  void take_answers();
  void flush_soon();
  void flush();
  void go_on();
  void set_deadline();
  [[nodiscard]] bool unused() const noexcept;
  void leave();
  void hold(std::size_t octets) noexcept;
  void release(std::size_t octets) noexcept;

  Listener& listener_;
  std::unique_ptr<io::Stream> client_;
  Commands commands_;  // begun, and not answered yet or not in out_
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::size_t scanned_ = 0;
  std::uint64_t skip_ = 0;      // octets of a data block to be thrown away
  std::size_t unanswered_ = 0;  // octets of commands_
  std::size_t held_ = 0;        // counted in Context::memcached_held
  std::uint64_t waits_since_ns_ = 0;
  std::string text_;      // of stats and version
  bool reading_ = false;  // in read_commands()
  bool blocked_ = false;  // the client takes nothing more at the moment
  bool flush_wanted_ = false;
  bool ending_ = false;  // no command is read any more; ends with the last answer
  bool gone_ = false;
};

}  // namespace clockwise::proxy
