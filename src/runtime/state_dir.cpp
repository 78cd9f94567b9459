#include "runtime/state_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/log.h"

namespace clockwise::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = 256U << 20U;  // what we write is far smaller

Error unusable(const std::string& folder, const std::string& why) {
  return fail(fmt::format("state_dir: \"{}\" cannot be used: {}", folder, why));
}

std::string without_slash(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

std::string last_error() { return std::strerror(errno); }

// Closes the descriptor in any case; the answer is why it failed.
std::optional<std::string> write_and_sync(int file, std::string_view text) {
  std::optional<std::string> problem;
  while (!text.empty() && !problem) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      problem = last_error();
  }
  if (!problem && ::fsync(file) != 0) problem = last_error();
  ::close(file);
  return problem;
}

// A rename is safe from a power cut only when the folder is on the disk as well.
void sync_folder(const std::string& file) {
  const int folder =
      ::open(fs::path(file).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)::fsync(folder);
  ::close(folder);
}

std::optional<std::string> replace_file(const std::string& file, std::string_view text) {
  const std::string fresh = file + ".new";
  const int descriptor =
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return last_error();
  std::optional<std::string> problem = write_and_sync(descriptor, text);
  if (!problem && ::rename(fresh.c_str(), file.c_str()) != 0) problem = last_error();
  if (problem)
    ::unlink(fresh.c_str());
  else
    sync_folder(file);
  return problem;
}

Result<std::string> text_of(const std::string& file) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed) return fail(failed.message());
  if (size > kMostBytes) return fail("it is larger than any history");
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail("it cannot be read");
  return Result<std::string>(boost::system::in_place_value, std::move(text).str());
}

std::string lock_file(const std::string& folder) { return (fs::path(folder) / "lock").string(); }

constexpr int kTaken = -1;

// Makes the folder where it is missing and locks it. The descriptor of the lock; kTaken when
// another process has it.
Result<int> take(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(fs::path(folder).parent_path(), failed);  // mkdir says what is wrong
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return fail(last_error());
  const int lock =
      ::open(lock_file(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (lock < 0) return fail(last_error());
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return kTaken;
}

std::uint64_t requests_of(const upstream::History& history) {
  std::uint64_t total = 0;
  for (const upstream::RemapPtr& remap : history) total += remap->remapped_requests();
  return total;
}

}  // namespace

StateDir::StateDir(std::string folder, int lock)
    : folder_(std::move(folder)),
      file_((fs::path(folder_) / "remaps.json").string()),
      lock_(lock) {}

StateDir::~StateDir() { ::close(lock_); }

Result<std::unique_ptr<StateDir>> StateDir::open(const std::string& named) {
  const std::string folder = without_slash(named);
  const auto lock = take(folder);
  if (!lock) return unusable(folder, lock.error().message);
  if (*lock != kTaken) return std::unique_ptr<StateDir>(new StateDir(folder, *lock));
  log::warn("state_dir: another process uses \"{}\"; the history of this one is not kept", folder);
  return std::unique_ptr<StateDir>();
}

// Is the lock that is held the one that another process would come upon?
bool StateDir::holds_folder() const {
  struct stat held{}, there{};
  return ::fstat(lock_, &held) == 0 && ::stat(lock_file(folder_).c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

std::optional<std::string> StateDir::take_again() {
  const auto lock = take(folder_);
  if (!lock) return lock.error().message;
  if (*lock == kTaken) return "another process uses the folder";
  ::close(std::exchange(lock_, *lock));
  log::info("state_dir: \"{}\" was gone, it is made again", folder_);
  return std::nullopt;
}

upstream::SavedHistory StateDir::load() {
  std::error_code failed;
  if (!fs::exists(file_, failed)) return {};
  auto text = text_of(file_);
  auto history = text ? upstream::parse_history(*text) : text.error();
  if (!history) {
    const std::string aside = file_ + ".bad";
    log::warn("\"{}\" is no history that can be read ({}); it is now \"{}\"", file_,
              history.error().message, aside);
    fs::rename(file_, aside, failed);
    return {};
  }
  saved_id_ = history->last_id;
  saved_requests_ = 0;
  for (const upstream::Remap& remap : history->remaps) saved_requests_ += remap.remapped_requests();
  return std::move(*history);
}

void StateDir::save(const upstream::View& view) {
  const std::uint64_t requests = requests_of(view.history);
  const bool lost = !holds_folder();
  if (!lost && view.last_remap_id == saved_id_ && requests == saved_requests_) return;
  auto problem = lost ? take_again() : std::nullopt;
  if (!problem) problem = replace_file(file_, history_text(view.history, view.last_remap_id));
  if (problem && !failing_)
    log::warn("\"{}\" cannot be written: {}; the history is kept in memory until it can", file_,
              *problem);
  if (!problem && failing_) log::info("\"{}\" is written again", file_);
  failing_ = problem.has_value();
  if (failing_) return;
  saved_id_ = view.last_remap_id;
  saved_requests_ = requests;
}

Result<void> check_state_dir(const std::string& folder) {
  fs::path there = fs::path(folder);
  std::error_code failed;
  while (!fs::exists(there, failed)) {
    const fs::path above = there.has_parent_path() ? there.parent_path() : fs::path(".");
    if (above == there) break;
    there = above;
  }
  if (!fs::is_directory(there, failed))
    return unusable(folder, "\"" + there.string() + "\" is no folder");
  if (::access(there.c_str(), W_OK | X_OK) != 0) return unusable(folder, last_error());
  return {};
}

}  // namespace clockwise::runtime
