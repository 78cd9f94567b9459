#include "runtime/watcher.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

namespace clockwise::runtime {
namespace {

namespace fs = std::filesystem;
using upstream::Trigger;

constexpr std::uint32_t kFolderEvents = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |
                                        IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF |
                                        IN_MOVE_SELF | IN_ONLYDIR;
constexpr int kMaxSymlinks = 40;  // the kernel's own limit

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string mark_of(const std::variant<std::string, std::string>& content) {
  return (content.index() == 0 ? "content " : "failure ") +
         std::visit([](const std::string& text) { return sha256(text); }, content);
}

struct Route {
  std::set<std::string> folders;  // in which a change can lead to another file
  std::string target;             // the file itself
};

// Walks a path name by name as the kernel does.
Route route_of(const std::string& path) {
  Route route;
  std::error_code ignored;
  fs::path left = fs::absolute(path, ignored).lexically_normal();
  fs::path here = "/";
  int symlinks = 0;
  left = left.relative_path();
  while (!left.empty()) {
    const fs::path name = *left.begin();
    fs::path rest;
    for (auto part = std::next(left.begin()); part != left.end(); ++part) rest /= *part;
    const fs::path next = name == ".." ? here.parent_path() : name == "." ? here : here / name;
    const bool symlink = fs::is_symlink(fs::symlink_status(next, ignored));
    if (symlink || rest.empty()) route.folders.insert(here);
    if (symlink && ++symlinks <= kMaxSymlinks) {
      const fs::path to = fs::read_symlink(next, ignored);
      if (to.is_absolute()) here = "/";
      left = to.relative_path() / rest;
      if (rest.empty()) left = to.relative_path();
      continue;
    }
    here = next;
    left = rest;
  }
  route.target = here;
  return route;
}

}  // namespace

config::FileReader marking(config::FileReader read, FileMarks& marks) {
  return [read = std::move(read), &marks](const std::string& path) {
    auto content = read(path);
    marks[path] = mark_of(content);
    return content;
  };
}

Watcher::Watcher(boost::asio::io_context& io, config::FileReader read, Events events, Timing timing)
    : io_(io),
      read_(std::move(read)),
      events_(std::move(events)),
      timing_(timing),
      inotify_(io),
      settle_timer_(io),
      poll_timer_(io),
      writer_timer_(io) {
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor >= 0) {
    inotify_.assign(descriptor);
    read_events();
  }
  poll_later();
}

Watcher::~Watcher() = default;

void Watcher::watch(const FileMarks& marks) {
  FileMarks next;
  for (const auto& [path, mark] : marks) {
    const auto known = seen_.find(path);
    next[path] = known == seen_.end() ? mark : known->second;
  }
  seen_ = std::move(next);
  if (tried_ != marks) told_.clear();
  tried_ = marks;
  follow_folders();
  last_signature_ = signature();
  // What changed before the folders were watched gave no event.
  schedule_look(Trigger::watch);
}

// --- events -----------------------------------------------------------------------------------

void Watcher::read_events() {
  inotify_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code stopped) {
                        if (stopped) return;
                        take_events();
                        read_events();
                      });
}

bool Watcher::take_events() {
  bool any = false;
  while (inotify_.is_open()) {
    const ssize_t size = ::read(inotify_.native_handle(), buffer_.data(), buffer_.size());
    if (size <= 0) break;
    any = true;
    for (const char* at = buffer_.data(); at < buffer_.data() + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      take_event(event->wd, event->mask, event->len != 0 ? event->name : "");
      at += sizeof(inotify_event) + event->len;
    }
  }
  if (!any) return false;
  // Another file's change in the same folder restarts nothing, or a busy folder would hold up
  // every reload.
  std::string now = signature();
  if (!look_scheduled_ || now != last_signature_) schedule_look(Trigger::watch);
  last_signature_ = std::move(now);
  if (!waiting_.empty() && !being_written()) run_waiting();
  return true;
}

void Watcher::take_event(int folder, std::uint32_t mask, const std::string& name) {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return;
  if ((mask & IN_IGNORED) != 0) {
    folders_.erase(found);
    return;
  }
  const std::string path = fs::path(found->second) / name;
  if (targets_.contains(path)) note_writer(mask, path);
}

void Watcher::note_writer(std::uint32_t mask, const std::string& path) {
  if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) != 0) {
    writers_.erase(path);
    return;
  }
  struct stat status{};
  const bool made_empty = (mask & IN_CREATE) != 0 && ::lstat(path.c_str(), &status) == 0 &&
                          S_ISREG(status.st_mode) && status.st_size == 0 && status.st_nlink == 1;
  if (made_empty || (mask & IN_MODIFY) != 0) writers_.try_emplace(path, Clock::now());
}

void Watcher::follow_folders() {
  std::set<std::string> wanted;
  targets_.clear();
  for (const auto& [path, mark] : seen_) {
    Route route = route_of(path);
    wanted.merge(route.folders);
    targets_.insert(std::move(route.target));
  }
  if (!inotify_.is_open()) return;
  std::erase_if(folders_, [&](const auto& watched) {
    if (wanted.contains(watched.second)) return false;
    ::inotify_rm_watch(inotify_.native_handle(), watched.first);
    return true;
  });
  for (const std::string& folder : wanted) {
    const int watch = ::inotify_add_watch(inotify_.native_handle(), folder.c_str(), kFolderEvents);
    if (watch < 0) continue;  // absent now: the regular look finds it when it is back
    // A folder that was moved away keeps its watch under its old name.
    std::erase_if(folders_, [&](const auto& w) { return w.second == folder && w.first != watch; });
    folders_[watch] = folder;
  }
}

// --- looks ------------------------------------------------------------------------------------

void Watcher::schedule_look(Trigger trigger) {
  if (!look_scheduled_) {
    first_event_ = Clock::now();
    look_trigger_ = trigger;
  }
  look_scheduled_ = true;
  settle_timer_.expires_after(timing_.settle);
  settle_timer_.async_wait([this](boost::system::error_code stopped) {
    if (!stopped) look();
  });
}

void Watcher::look() {
  const bool overdue = Clock::now() - first_event_ > timing_.writer;
  if (being_written() && !overdue) return schedule_look(look_trigger_);

  look_scheduled_ = false;
  last_signature_ = signature();
  FileMarks now = current_marks();
  const bool all_there = std::none_of(now.begin(), now.end(), [](const auto& file) {
    return ::access(file.first.c_str(), F_OK) != 0;
  });
  if (events_.up) events_.up(all_there);
  follow_folders();
  if (!differs(now)) return;
  seen_ = told_ = std::move(now);
  events_.changed(look_trigger_);
}

// From the last look, or from what the caller read, of which it is told once.
bool Watcher::differs(const FileMarks& now) const {
  return now != seen_ || (now != tried_ && now != told_);
}

void Watcher::poll_later() {
  poll_timer_.expires_after(timing_.poll);
  poll_timer_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    poll();
    poll_later();
  });
}

void Watcher::poll() {
  if (look_scheduled_ || seen_.empty()) return;
  follow_folders();
  if (differs(current_marks())) schedule_look(Trigger::poll);
}

std::string Watcher::signature() const {
  std::string text;
  for (const auto& [path, mark] : seen_) {
    struct stat s{};
    if (::stat(path.c_str(), &s) != 0) {
      text += "absent;";
      continue;
    }
    text += fmt::format("{} {} {} {}.{} {}.{};", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                        s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
  }
  return text;
}

FileMarks Watcher::current_marks() const {
  FileMarks marks;
  for (const auto& [path, mark] : seen_) marks[path] = mark_of(read_(path));
  return marks;
}

// --- writers ----------------------------------------------------------------------------------

bool Watcher::being_written() {
  const auto patience = Clock::now() - timing_.writer;
  std::erase_if(writers_, [&](const auto& writer) { return writer.second <= patience; });
  return !writers_.empty();
}

void Watcher::when_written(std::function<void()> ready) {
  take_events();
  if (!being_written()) return ready();
  waiting_.push_back(std::move(ready));
  wait_for_writers();
}

void Watcher::wait_for_writers() {
  Clock::time_point latest{};
  for (const auto& [path, since] : writers_) latest = std::max(latest, since);
  writer_timer_.expires_at(latest + timing_.writer);
  writer_timer_.async_wait([this](boost::system::error_code stopped) {
    if (stopped || waiting_.empty()) return;
    if (being_written()) return wait_for_writers();
    run_waiting();
  });
}

void Watcher::run_waiting() {
  writer_timer_.cancel();
  for (auto& ready : std::exchange(waiting_, {})) ready();
}

}  // namespace clockwise::runtime
