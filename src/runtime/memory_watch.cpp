#include "runtime/memory_watch.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "runtime/log.h"

namespace clockwise::runtime {
namespace {

constexpr std::chrono::milliseconds kEvery{100};
constexpr double kShareOfGroup = 0.85;  // before the kernel kills the process
constexpr double kEnoughAgain = 0.95;   // of the threshold
constexpr std::chrono::seconds kEveryWithoutLimit{1};
constexpr std::chrono::seconds kReturnEvery{5};
constexpr std::chrono::seconds kReturnWhenShort{1};
constexpr std::uint64_t kWorthReturning = 2 << 20U;
// Version 1 says "none" by a number close to 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

std::optional<std::uint64_t> number_in(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || number >= kNoLimit) return std::nullopt;  // "max"
  return number;
}

void lower(std::optional<std::uint64_t>& least, const std::optional<std::uint64_t>& limit) {
  if (limit) least = std::min(*limit, least.value_or(*limit));
}

// The folders of a group and those above it, innermost first. In a container the path may be that
// of the host, of which only the root can be seen.
std::optional<std::uint64_t> least_limit(const TextReader& read, const std::string& root,
                                         std::string path, const std::string& file) {
  std::optional<std::uint64_t> least;
  while (true) {
    if (path == "/") path.clear();
    lower(least, number_in(read(root + path + "/" + file)));
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A line of /proc/self/cgroup: `0::/path` (version 2) or `4:memory:/path` (version 1).
std::optional<std::uint64_t> memory_limit_of_group(const TextReader& read) {
  std::optional<std::uint64_t> least;
  std::istringstream lines(read("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      lower(least, least_limit(read, "/sys/fs/cgroup", path, "memory.max"));
    else if (names_memory(controllers))
      lower(least, least_limit(read, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return least;
}

std::optional<std::uint64_t> memory_threshold(const config::Overload& overload,
                                              const TextReader& read) {
  switch (overload.memory) {
    case config::Overload::Memory::off:
      return std::nullopt;
    case config::Overload::Memory::fixed:
      return overload.bytes;
    case config::Overload::Memory::automatic:
      break;
  }
  const auto limit = memory_limit_of_group(read);
  if (!limit) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(*limit) * kShareOfGroup);
}

bool memory_is_short(std::uint64_t resident, std::uint64_t threshold, bool was_short) {
  if (!was_short) return resident > threshold;
  return static_cast<double>(resident) > static_cast<double>(threshold) * kEnoughAgain;
}

MemoryWatch::MemoryWatch(boost::asio::io_context& io, std::shared_ptr<proxy::Admission> admission)
    : admission_(std::move(admission)),
      timer_(io),
      statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

MemoryWatch::~MemoryWatch() {
  if (statm_ >= 0) ::close(statm_);
}

void MemoryWatch::configure(const config::Overload& overload) {
  threshold_ = memory_threshold(overload, read_text);
  if (!threshold_) admission_->short_of_memory = false;
  look();
}

void MemoryWatch::look() {
  timer_.expires_after(threshold_ ? kEvery : kEveryWithoutLimit);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (!stopped) look();
  });
  const std::uint64_t bytes = resident();
  if (bytes == 0) return;
  if (threshold_) judge(bytes);
  give_back(bytes);
}

// 0: cannot be told.
std::uint64_t MemoryWatch::resident() const noexcept {
  std::array<char, 128> text;
  const ssize_t size = ::pread(statm_, text.data(), text.size(), 0);
  const char* const end = text.data() + std::max<ssize_t>(size, 0);
  const char* const second = std::find(static_cast<const char*>(text.data()), end, ' ') + 1;
  std::uint64_t pages = 0;
  if (second < end) std::from_chars(second, end, pages);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void MemoryWatch::judge(std::uint64_t resident) {
  const bool was_short = admission_->short_of_memory.load(std::memory_order_relaxed);
  const bool is_short = memory_is_short(resident, *threshold_, was_short);
  if (is_short == was_short) return;
  admission_->short_of_memory.store(is_short, std::memory_order_relaxed);
  if (is_short)
    log::warn(
        "overload: {} MiB resident, more than {} MiB (overload.memory): new work is turned away",
        resident >> 20U, *threshold_ >> 20U);
  else
    log::info("overload: {} MiB resident: new work is taken again", resident >> 20U);
}

// The allocator keeps what was freed, so a rush would be paid for ever and an overload could last
// for ever. Not while memory grows, and not where the last time left hardly less: a steady load
// needs what it has.
void MemoryWatch::give_back(std::uint64_t resident) {
  const bool is_short = admission_->short_of_memory.load(std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_return_ < (is_short ? kReturnWhenShort : kReturnEvery)) return;
  looked_at_return_ = now;
  const bool grows = resident > std::exchange(before_, resident);
  if (!is_short && (grows || resident < after_return_ + kWorthReturning)) return;
  ::malloc_trim(0);
  after_return_ = before_ = this->resident();
}

}  // namespace clockwise::runtime
