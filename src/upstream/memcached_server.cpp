#include "upstream/memcached_server.h"

#include <algorithm>
#include <charconv>

#include "memcached/command.h"
#include "upstream/memcached_pipe.h"

namespace clockwise::upstream {

using memcached::Reply;
using memcached::ReplyKind;
using metrics::BackendError;

std::string_view describe(CallFailure failure) noexcept {
  switch (failure) {
    case CallFailure::refused:
      return "refused";
    case CallFailure::timed_out:
      return "timed out";
    case CallFailure::closed:
      return "closed";
    case CallFailure::garbled:
      return "garbled";
    case CallFailure::away:
      return "away";
  }
  return {};
}

namespace {

BackendError error_of(CallFailure failure) noexcept {
  switch (failure) {
    case CallFailure::refused:
    case CallFailure::away:
      return BackendError::connect;
    case CallFailure::timed_out:
      return BackendError::timeout;
    case CallFailure::closed:
      return BackendError::reset;
    case CallFailure::garbled:
      break;
  }
  return BackendError::protocol;
}

}  // namespace

// Asked on each new connection: who it is, and how large an item may be.
class MemcachedServer::Settings final : public MemcachedCall {
 public:
  static void ask(MemcachedPipe& pipe, Backend& backend, std::chrono::milliseconds patience) {
    const auto one = [&](std::string_view line, AnswerShape shape) {
      pipe.ask(
          *new Settings(backend),
          {.line = line, .data = {}, .shape = shape, .repeatable = false, .patience = patience});
    };
    one("version\r\n", AnswerShape::line);
    one("stats settings\r\n", AnswerShape::stats);
  }

 private:
  // Ends with its answer.
  explicit Settings(Backend& backend) : backend_(backend) {}

  bool on_reply(const Reply& reply) override {
    constexpr std::string_view kSize = "STAT item_size_max ", kVersion = "VERSION ";
    if (reply.line.starts_with(kVersion)) read_version(reply.line.substr(kVersion.size()));
    if (reply.line.starts_with(kSize)) read_size(reply.line.substr(kSize.size()));
    return true;
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override { delete this; }
  void on_failed(CallFailure) override { delete this; }

  void read_size(std::string_view number) {
    std::uint64_t size = 0;
    std::from_chars(number.data(), number.data() + number.size(), size);
    if (size > 0)
      backend_.memcached.item_size_max.store(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(size, 1U << 30)),
          std::memory_order_relaxed);
  }
  void read_version(std::string_view text) {
    std::uint32_t version = 0;
    for (int i = 0; i < 3; ++i) {
      std::uint32_t number = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      if (text.starts_with('.')) text.remove_prefix(1);
      version = (version << 10) | std::min<std::uint32_t>(number, 1023);
    }
    backend_.memcached.version.store(version, std::memory_order_relaxed);
  }

  Backend& backend_;
};

// Looks whether a server that was away answers again, and has it forget what it holds under the
// keys whose writes it has missed.
class MemcachedServer::Probe final : MemcachedCall {
 public:
  explicit Probe(MemcachedServer& home) : home_(home) {}

  [[nodiscard]] bool running() const noexcept { return under_way() || left_ > 0; }
  void start() {
    answers_ = false;
    send(*this, "mn\r\n");
  }

 private:
  struct Delete final : MemcachedCall {
    explicit Delete(Probe& owner) : probe(owner) {}
    bool on_reply(const Reply& reply) override {
      using enum ReplyKind;
      done = reply.kind == deleted || reply.kind == not_found || reply.kind == ok ||
             reply.kind == meta_done || reply.kind == meta_not_found;
      return true;
    }
    void on_value(std::string_view, std::uint32_t) override {}
    void on_answered() override { probe.forgotten(done); }
    void on_failed(CallFailure) override { probe.forgotten(false); }
    Probe& probe;
    bool done = false;
  };

  bool on_reply(const Reply& reply) override {
    // A server from before the meta commands says ERROR, and is alive.
    answers_ = reply.kind == ReplyKind::meta_noop || reply.kind == ReplyKind::error;
    return answers_;
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override { forget_missed(); }
  void on_failed(CallFailure) override {}

  void send(MemcachedCall& call, std::string_view line) {
    home_.pipe().ask(call, {.line = line,
                            .data = {},
                            .shape = AnswerShape::line,
                            .repeatable = false,
                            .patience = home_.response_timeout_});
  }

  void forget_missed() {
    missed_ = home_.backend_->memcached.missed.take();
    if (missed_.none()) return home_.found();
    deletes_.clear();
    good_ = true;
    left_ = missed_.all ? 1 : missed_.keys.size();
    if (missed_.all) {
      send(*deletes_.emplace_back(std::make_unique<Delete>(*this)), "flush_all\r\n");
      return;
    }
    std::string line;
    for (const std::string& key : missed_.keys) {
      line.clear();
      (void)memcached::append_delete(key, line);
      send(*deletes_.emplace_back(std::make_unique<Delete>(*this)), line);
    }
  }

  void forgotten(bool done) {
    good_ = good_ && done;
    if (--left_ > 0) return;
    if (!good_) return home_.backend_->memcached.missed.put_back(std::move(missed_));
    missed_ = {};
    forget_missed();  // what was missed meanwhile
  }

  MemcachedServer& home_;
  MissedWrites::Taken missed_;
  std::vector<std::unique_ptr<Delete>> deletes_;
  std::size_t left_ = 0;
  bool good_ = true;
  bool answers_ = false;
};

MemcachedServer::MemcachedServer(io::Loop& loop, std::shared_ptr<Backend> backend,
                                 std::size_t worker)
    : loop_(loop), backend_(std::move(backend)), cells_(backend_->cells.at(worker)) {}

// A connection that came to rest after retire() may still be read from in this turn.
MemcachedServer::~MemcachedServer() {
  while (!leaving_.empty()) remove(*leaving_.back());
  while (!pipes_.empty()) remove(*pipes_.back());
}

bool MemcachedServer::away() const noexcept { return endpoints_.empty() || health_->away(); }

void MemcachedServer::configure(const std::shared_ptr<const Pool>& pool, const Server& server) {
  retired_ = false;
  off_ = server.config.state == config::ServerState::down;
  endpoints_ = server.endpoints;
  health_ = server.health;
  board_ = pool->health;
  settings_ = pool->config.memcached;
  connect_timeout_ = static_cast<io::Milliseconds>(pool->config.timeouts.connect.count());
  response_timeout_ = pool->config.timeouts.response;
  idle_timeout_ = static_cast<io::Milliseconds>(pool->config.timeouts.idle.count());
}

bool MemcachedServer::ask(MemcachedCall& call, const MemcachedRequest& request) {
  if (away()) return false;
  pipe().ask(call, request);
  return true;
}

// The next one in turn, where there are several.
MemcachedPipe& MemcachedServer::pipe() {
  if (pipes_.size() < settings_.server_connections) return open();
  if (pipes_.size() == 1) return *pipes_.front();
  return *pipes_[++next_pipe_ % pipes_.size()];
}

MemcachedPipe& MemcachedServer::open() {
  MemcachedPipe& pipe =
      *pipes_.emplace_back(std::make_unique<MemcachedPipe>(loop_, *this, turn_++));
  pipe.connect();
  Settings::ask(pipe, *backend_, response_timeout_);
  return pipe;
}

// It is closed, and destroyed once that is safe.
void MemcachedServer::remove(MemcachedPipe& pipe) {
  for (Pipes* pipes : {&pipes_, &leaving_}) {
    const auto found = std::ranges::find(*pipes, &pipe, &std::unique_ptr<MemcachedPipe>::get);
    if (found == pipes->end()) continue;
    std::unique_ptr<MemcachedPipe> owned = std::move(*found);
    pipes->erase(found);
    owned->close();
    loop_.bury(std::move(owned));
    return;
  }
}

void MemcachedServer::distrust(MemcachedPipe& pipe) {
  const auto found = std::ranges::find(pipes_, &pipe, &std::unique_ptr<MemcachedPipe>::get);
  if (found == pipes_.end()) return;
  leaving_.push_back(std::move(*found));
  pipes_.erase(found);
}

void MemcachedServer::failed(CallFailure failure) {
  at(cells_.errors, error_of(failure)).add();
  cells_.failures.add();
  const bool was_away = health_->away();
  board_->failed(*health_, error_of(failure), false);
  if (!was_away && health_->away()) fail_all();
}

// What other connections to it still owe will not come either.
void MemcachedServer::fail_all() {
  while (!leaving_.empty()) leaving_.back()->fail(CallFailure::away);
  while (!pipes_.empty()) pipes_.back()->fail(CallFailure::away);
}

void MemcachedServer::missed_write(std::string_view key) {
  if (settings_.on_return != config::Memcached::OnReturn::distrust) return;
  backend_->memcached.missed.add(key);
  board_->lost(*health_, "a write did not reach it");
}

void MemcachedServer::missed_flush() {
  if (settings_.on_return != config::Memcached::OnReturn::distrust) return;
  backend_->memcached.missed.add_all();
  board_->lost(*health_, "a flush_all did not reach it");
}

void MemcachedServer::found() {
  board_->found(*health_);
  // Somebody may have added one before it saw that the server is back.
  MissedWrites::Taken missed = backend_->memcached.missed.take();
  if (missed.none()) return;
  backend_->memcached.missed.put_back(std::move(missed));
  board_->lost(*health_, "a write did not reach it");
}

void MemcachedServer::on_tick() {
  if (retired_ || endpoints_.empty()) return;
  const bool unknown = version() == 0 && pipes_.empty();
  if (!health_->away() && (!unknown || off_)) return;
  if (probe_ && probe_->running()) return;
  auto& due = backend_->memcached.probe_due_ms;
  std::uint64_t at = due.load(std::memory_order_relaxed);
  const std::uint64_t now = loop_.now();
  const auto next = now + static_cast<std::uint64_t>(settings_.retry_interval.count());
  if (now < at || !due.compare_exchange_strong(at, next, std::memory_order_relaxed)) return;
  if (!health_->away()) return (void)open();
  if (!probe_) probe_ = std::make_unique<Probe>(*this);
  probe_->start();
}

bool MemcachedServer::idle() const noexcept {
  const auto idle = [](const auto& pipe) { return pipe->idle(); };
  return std::ranges::all_of(pipes_, idle) && std::ranges::all_of(leaving_, idle);
}

std::size_t MemcachedServer::close_idle() {
  std::size_t closed = 0;
  for (std::size_t i = pipes_.size(); i-- > 0;) {
    if (!pipes_[i]->idle()) continue;
    remove(*pipes_[i]);
    ++closed;
  }
  return closed;
}

void MemcachedServer::retire() {
  retired_ = true;
  close_idle();
}

// Whoever is told so may go on with what is to be asked next.
void MemcachedServer::drop_all() {
  retired_ = true;
  endpoints_.clear();
  fail_all();
}

}  // namespace clockwise::upstream
