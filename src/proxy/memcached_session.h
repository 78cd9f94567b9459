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
  // Octets of an answer that waits for its turn.
  void hold(std::size_t octets) noexcept { held_ += octets; }
  // There is memory again.
  void resume();
  [[nodiscard]] std::string_view stats(std::string_view arguments);

 private:
  using Commands = boost::intrusive::slist<MemcachedCommand, boost::intrusive::cache_last<true>,
                                           boost::intrusive::constant_time_size<false>>;

  void on_read(const io::error_code& error, std::size_t n) override;
  void on_readable(const io::error_code& error) override;
  void on_writable(const io::error_code& error) override;
  void on_connected(const io::error_code&) override {}
  void on_deadline() override;

  void begin_commands();
  [[nodiscard]] bool read_command();
  [[nodiscard]] bool begin(const memcached::Command& command);
  [[nodiscard]] bool hold_back(const memcached::Command& command);
  [[nodiscard]] bool must_wait(const memcached::Command& command);
  void make_room(std::size_t size);
  void refuse(const memcached::Command& command, const memcached::Refusal& refusal);
  void warn_of_binary();
  [[nodiscard]] bool skip_data();
  [[nodiscard]] bool has_room() const noexcept;
  MemcachedCommand& append();
  void begun(const MemcachedCommand& command) noexcept;
  void take_answers();
  void flush_soon();
  void go_on_soon();
  void wait_for_room();
  void flush();
  void go_on();
  void set_deadline();
  [[nodiscard]] bool unused() const noexcept;
  void leave();
  void account() noexcept;
  void count(const MemcachedCommand& command) noexcept;
  void learn(MemcachedCommand& command) noexcept;

  Listener& listener_;
  std::unique_ptr<io::Stream> client_;
  Commands commands_;  // begun, and not answered yet or not in out_
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::size_t scanned_ = 0;
  std::uint64_t skip_ = 0;      // octets of a data block to be thrown away
  std::size_t unanswered_ = 0;  // octets of commands_ and what they cost beside
  std::size_t asked_ = 0;       // keys of commands_
  std::size_t in_steps_ = 0;    // commands_ that are not asked of all servers at once
  std::size_t per_key_;         // octets of an answer, as the last ones were
  std::size_t held_ = 0;        // octets of answers in commands_
  std::size_t accounted_ = 0;   // of in() and out_, in Context::memcached_held
  std::uint64_t waits_since_ns_ = 0;
  std::string text_;        // of stats
  bool reading_ = false;    // in begin_commands()
  bool wants_more_ = true;  // what is in in() is no whole command
  bool held_back_ = false;  // the next one waits for an answer to those before it
  bool eof_ = false;        // the client sends nothing more
  bool blocked_ = false;    // the client takes nothing more at the moment
  bool go_on_wanted_ = false;
  bool ending_ = false;  // no command is read any more; ends with the last answer
  bool gone_ = false;
};

}  // namespace clockwise::proxy
