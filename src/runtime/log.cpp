#include "runtime/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace clockwise::runtime::log {
namespace {

constexpr std::size_t kMostWaiting = 2048;  // lines; some 700 KiB
constexpr auto kPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";

std::atomic<Level> lowest{Level::info};

// How many lines the writer has done with.
class Done {
 public:
  void add(std::uint64_t lines) {
    {
      const std::lock_guard lock(mutex_);
      count_ += lines;
    }
    changed_.notify_all();
  }
  bool wait_for(std::uint64_t lines, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return count_ >= lines; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;
};

// Writes past stdio: whoever exits while a write is stuck would wait for the lock of the stream.
class Stderr final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Stderr(spdlog::details::thread_pool& pool, Done& done) : pool_(pool), done_(done) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::uint64_t lost = pool_.overrun_counter() - told_;
    if (lost != 0) {
      told_ += lost;
      const std::string text = fmt::format("{} older log lines were lost: stderr took none", lost);
      write_line({message.time, {}, message.logger_name, spdlog::level::warn, text});
    }
    write_line(message);
    done_.add(lost + 1);
  }
  void flush_() override {}

  void write_line(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view left(line.data(), line.size());
    while (!left.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
      if (written > 0)
        left.remove_prefix(static_cast<std::size_t>(written));
      else if (errno != EINTR)
        return;
    }
  }

  spdlog::details::thread_pool& pool_;
  Done& done_;
  std::uint64_t told_ = 0;
};

// Never destroyed: that would wait for a writer that may be stuck.
struct Writer {
  Writer() {
    logger->set_pattern(kPattern);
    logger->set_level(spdlog::level::trace);  // `lowest` decides
  }

  Done done;
  std::atomic<std::uint64_t> begun{0};  // lines
  const std::shared_ptr<spdlog::details::thread_pool> pool =
      std::make_shared<spdlog::details::thread_pool>(kMostWaiting, 1);
  const std::shared_ptr<spdlog::async_logger> logger =
      std::make_shared<spdlog::async_logger>("clockwise", std::make_shared<Stderr>(*pool, done),
                                             pool, spdlog::async_overflow_policy::overrun_oldest);
};

Writer& writer() {
  static Writer& instance = *new Writer;
  return instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::error:
      return spdlog::level::err;
    case Level::warn:
      return spdlog::level::warn;
    case Level::info:
      return spdlog::level::info;
    case Level::debug:
      break;
  }
  return spdlog::level::debug;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char octet : text) {
    const auto c = static_cast<unsigned char>(octet);
    if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", c);
    else
      out += octet;
  }
  return out;
}

}  // namespace

std::optional<Level> level_of(std::string_view name) noexcept {
  if (name == "error") return Level::error;
  if (name == "warn") return Level::warn;
  if (name == "info") return Level::info;
  if (name == "debug") return Level::debug;
  return std::nullopt;
}

void set_level(Level level) { lowest = level; }

void write(Level level, std::string_view text) {
  if (level > lowest.load(std::memory_order_relaxed)) return;
  ++writer().begun;
  writer().logger->log(to_spdlog(level), one_line(text));
}

bool flush(std::chrono::milliseconds patience) {
  return writer().done.wait_for(writer().begun, patience);
}

}  // namespace clockwise::runtime::log
