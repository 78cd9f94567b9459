#include "cli/streams.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace clockwise::cli {
namespace {

constexpr std::size_t kReadSize = 256 * 1024;

Error system_error(const std::string& what) { return fail(what + ": " + std::strerror(errno)); }

// Hands on all whole lines of `pending` and keeps the rest.
Result<void> take_lines(std::string& pending,
                        const std::function<Result<void>(std::string_view)>& line) {
  const std::string_view text = pending;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find('\n', start)) != std::string_view::npos; start = end + 1)
    if (auto done = line(text.substr(start, end - start)); !done) return done;
  pending.erase(0, start);
  return {};
}

}  // namespace

Result<void> read_lines(int descriptor, const std::function<Result<void>(std::string_view)>& line,
                        const std::function<Result<void>(std::uint64_t)>& after_read) {
  std::vector<char> block(kReadSize);
  std::string pending;
  std::uint64_t total = 0;
  for (;;) {
    const ssize_t size = ::read(descriptor, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error("cannot read");
    if (size == 0) break;
    total += static_cast<std::uint64_t>(size);
    pending.append(block.data(), static_cast<std::size_t>(size));
    if (auto done = take_lines(pending, line); !done) return done;
    if (auto done = after_read(total); !done) return done;
  }
  if (!pending.empty())
    if (auto done = line(pending); !done) return done;
  return after_read(total);
}

Result<void> Output::flush() {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error("cannot write to standard output");
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
  text_.clear();
  return {};
}

}  // namespace clockwise::cli
