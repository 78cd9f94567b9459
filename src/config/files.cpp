// The real file system and environment (see load.h).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "config/load.h"

namespace clockwise::config {
namespace {

constexpr std::size_t kMaxFile = std::size_t{64} << 20;

using Contents = std::variant<std::string, std::string>;

Contents refused(std::string reason) { return Contents(std::in_place_index<1>, std::move(reason)); }

Contents refused(int error) {
  std::string reason = std::generic_category().message(error);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z')
    reason[0] = static_cast<char>(reason[0] + 32);
  return refused(std::move(reason));
}

class Descriptor {
 public:
  // Not blocking: opening a pipe must not wait for a writer.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

Contents read_whole(int descriptor, std::size_t expected) {
  std::string text;
  text.reserve(expected + 1);
  std::string block(64 * 1024, '\0');
  for (;;) {
    const ssize_t got = ::read(descriptor, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(errno);
    if (got == 0) return Contents(std::in_place_index<0>, std::move(text));
    text.append(block, 0, static_cast<std::size_t>(got));
    if (text.size() > kMaxFile) return refused(fmt::format("larger than {} MiB", kMaxFile >> 20));
  }
}

Contents read_file(const std::string& path) {
  const Descriptor file(path);
  if (file.number() < 0) return refused(errno);
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) return refused(errno);
  if (S_ISDIR(status.st_mode)) return refused("is a directory");
  if (!S_ISREG(status.st_mode)) return refused("is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kMaxFile) return refused(fmt::format("larger than {} MiB", kMaxFile >> 20));
  return read_whole(file.number(), size);
}

}  // namespace

FileReader real_files() { return read_file; }

Environment real_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

}  // namespace clockwise::config
