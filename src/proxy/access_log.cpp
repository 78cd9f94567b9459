#include "proxy/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "proxy/access_line.h"

namespace clockwise::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBufferBytes = 256 * 1024;  // per worker: some 700 lines
constexpr auto kFlushEvery = 200ms;
constexpr auto kLastFlush = 1s;  // how long a stuck sink may hold up the stop

bool is_standard(std::string_view path) { return path == "stderr" || path == "stdout"; }

Error cannot_open(const std::string& path) {
  return fail(fmt::format("access_log.file: cannot open {}: {}", path, std::strerror(errno)));
}

// The file, pipe or terminal that lines go to. Used by the writer thread alone.
class Sink {
 public:
  static Result<std::unique_ptr<Sink>> open(const std::string& path) {
    auto sink = std::unique_ptr<Sink>(new Sink(path));
    if (auto opened = sink->reopen(); !opened) return opened.error();
    return sink;
  }
  ~Sink() { close(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // On failure the file that was open stays in use.
  Result<void> reopen() {
    if (is_standard(path_)) {
      descriptor_ = path_ == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
    } else {
      const int fresh =
          ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
      if (fresh < 0) return cannot_open(path_);
      close();
      descriptor_ = fresh;
      owned_ = true;
    }
    struct stat status{};
    regular_ = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
    return {};
  }

  // Returns the text that could not be written: the sink failed, or did not take it until
  // `deadline`.
  std::string_view write(std::string_view text, std::chrono::steady_clock::time_point deadline) {
    while (!text.empty()) {
      if (!regular_ && !wait_writable(deadline)) return text;
      // A writable pipe takes 4 KiB without blocking, whatever its mode.
      const std::size_t size = regular_ ? text.size() : std::min<std::size_t>(text.size(), 4096);
      const ssize_t written = ::write(descriptor_, text.data(), size);
      if (written > 0)
        text.remove_prefix(static_cast<std::size_t>(written));
      else if (errno != EINTR && errno != EAGAIN)
        return text;
    }
    return text;
  }

 private:
  explicit Sink(std::string path) : path_(std::move(path)) {}

  bool wait_writable(std::chrono::steady_clock::time_point deadline) const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    return ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
  }

  void close() {
    if (owned_) ::close(descriptor_);
    owned_ = false;
  }

  std::string path_;
  int descriptor_ = -1;
  bool owned_ = false;
  bool regular_ = false;
};

// What one worker has formatted and the writer has not yet taken.
struct alignas(64) WorkerBuffer {
  explicit WorkerBuffer(config::LogFormat log_format) : format(log_format) {
    waiting.reserve(kBufferBytes);
    line.reserve(4096);
  }

  // Touched by the worker only.
  LineFormat format;
  std::string line;
  std::uint64_t random = 0;

  std::mutex mutex;  // between this worker and the writer; held to copy or swap
  std::string waiting;
  std::atomic<std::uint64_t> lost{0};  // lines the writer could not write; the worker counts them
};

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

class BufferedLog final : public AccessLog {
 public:
  BufferedLog(const config::AccessLog& config, std::unique_ptr<Sink> sink,
              std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> cells)
      : sample_(config.sample), sink_(std::move(sink)), cells_(std::move(cells)) {
    for (std::size_t i = 0; i < cells_->all().size(); ++i) {
      buffers_.push_back(std::make_unique<WorkerBuffer>(config.format));
      buffers_.back()->random = i;
    }
    taken_.reserve(kBufferBytes);
    writer_ = std::thread([this] { write_until_stopped(); });
  }

  ~BufferedLog() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }
  BufferedLog(const BufferedLog&) = delete;
  BufferedLog& operator=(const BufferedLog&) = delete;

  bool sampled(std::size_t worker) noexcept override {
    if (sample_ >= 1) return true;
    return static_cast<double>(next_random(buffers_[worker]->random) >> 11U) * 0x1p-53 < sample_;
  }

  void append(std::size_t worker, const AccessRecord& record) override {
    WorkerBuffer& buffer = *buffers_[worker];
    metrics::Cell& dropped = cells_->at(worker).log_dropped;
    if (buffer.lost.load(std::memory_order_relaxed) != 0) dropped.add(buffer.lost.exchange(0));
    buffer.line.clear();
    buffer.format.append(record, buffer.line);

    const std::unique_lock lock(buffer.mutex);
    const std::size_t before = buffer.waiting.size();
    if (before + buffer.line.size() > kBufferBytes) {
      dropped.add();
      return;
    }
    buffer.waiting += buffer.line;
    if (before < kBufferBytes / 2 && buffer.waiting.size() >= kBufferBytes / 2) hurry();
  }

  void reopen() override {
    {
      const std::lock_guard lock(mutex_);
      reopen_ = true;
    }
    wake_.notify_one();
  }

 private:
  void hurry() {
    hurry_.store(true, std::memory_order_relaxed);
    wake_.notify_one();
  }

  void write_until_stopped() {
    for (bool stopping = false; !stopping;) {
      bool reopen = false;
      {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kFlushEvery, [this] { return stopping_ || reopen_ || hurry_; });
        stopping = stopping_;
        reopen = std::exchange(reopen_, false);
        hurry_ = false;
      }
      flush(std::chrono::steady_clock::now() + (stopping ? kLastFlush : kFlushEvery));
      if (!reopen) continue;
      if (const auto reopened = sink_->reopen(); !reopened)
        fmt::print(stderr, "{}; writing on to the old file\n", reopened.error().message);
    }
  }

  void flush(std::chrono::steady_clock::time_point deadline) {
    for (const auto& buffer : buffers_) {
      // While the sink is behind, the lines stay where their number is bounded.
      if (!behind_.empty() && !finish_behind(deadline)) return;
      taken_.clear();
      {
        const std::lock_guard lock(buffer->mutex);
        std::swap(taken_, buffer->waiting);
      }
      behind_ = sink_->write(taken_, deadline);
      behind_of_ = buffer.get();
      if (!behind_.empty() && !finish_behind(deadline)) return;
    }
  }

  // Goes on with a text that was cut. A sink that fails rather than waits loses the lines.
  bool finish_behind(std::chrono::steady_clock::time_point deadline) {
    behind_ = sink_->write(behind_, deadline);
    if (behind_.empty()) return true;
    if (std::chrono::steady_clock::now() < deadline) {
      behind_of_->lost +=
          static_cast<std::uint64_t>(std::count(behind_.begin(), behind_.end(), '\n'));
      behind_ = {};
      return true;
    }
    return false;
  }

  const double sample_;
  std::unique_ptr<Sink> sink_;
  std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> cells_;
  std::vector<std::unique_ptr<WorkerBuffer>> buffers_;

  // The writer's own.
  std::string taken_;
  std::string_view behind_;  // the rest of `taken_` that the sink has not taken yet
  WorkerBuffer* behind_of_ = nullptr;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool reopen_ = false;
  std::atomic<bool> hurry_{false};
  std::thread writer_;
};

}  // namespace

Result<void> AccessLog::check(const config::AccessLog& config) {
  if (is_standard(config.file)) return {};
  const int there = ::open(config.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (there >= 0) {
    ::close(there);
    return {};
  }
  if (errno != ENOENT) return cannot_open(config.file);
  const std::filesystem::path folder = std::filesystem::path(config.file).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    return cannot_open(config.file);
  return {};
}

Result<std::shared_ptr<AccessLog>> AccessLog::open(
    const config::AccessLog& config,
    std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> cells) {
  auto sink = Sink::open(config.file);
  if (!sink) return sink.error();
  return std::shared_ptr<AccessLog>(
      std::make_shared<BufferedLog>(config, std::move(*sink), std::move(cells)));
}

}  // namespace clockwise::proxy
