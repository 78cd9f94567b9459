// Notices when the content of a set of files changes, however it is changed.
//
// Written in place, renamed over by an editor, swapped by Kubernetes' symlinks, deleted and made
// again: the folders are watched (those of every symlink on the way too), never the files, which
// go blind at the first rename. Where a mount gives no events, a look every two seconds finds the
// change all the same. Content is compared, so a save without a change is none.
//
// One thread, that of the io_context.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/load.h"
#include "upstream/directory.h"

namespace clockwise::runtime {

// A digest of what a file held, or of why it could not be read, by path.
using FileMarks = std::map<std::string, std::string>;

// Reads as `read` does and notes the mark of everything it read in `marks`, which has to outlive
// it.
[[nodiscard]] config::FileReader marking(config::FileReader read, FileMarks& marks);

class Watcher {
 public:
  struct Timing {
    std::chrono::milliseconds settle{200};    // quiet time before a change is looked at
    std::chrono::milliseconds poll{2'000};    // between two looks without an event
    std::chrono::milliseconds writer{5'000};  // how long a writer may keep a file open
  };
  struct Events {
    std::function<void(upstream::Trigger)> changed;  // watch or poll
    std::function<void(bool)> up;  // whether every file could be looked at, on each change
  };

  Watcher(boost::asio::io_context& io, config::FileReader read, Events events, Timing timing);
  Watcher(boost::asio::io_context& io, config::FileReader read, Events events)
      : Watcher(io, std::move(read), std::move(events), Timing{}) {}
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The files to watch from now on. `marks` is what the caller read of them: what differs from it
  // is a change, and so is what differs from the last look at a file that was watched before.
  void watch(const FileMarks& marks);

  // Runs `ready` once no writer has one of the files open, at once if so; at most after
  // Timing::writer.
  void when_written(std::function<void()> ready);

  // Whether the kernel reports changes; otherwise only the regular look finds them.
  [[nodiscard]] bool has_events() const noexcept { return inotify_.is_open(); }

 private:
  using Clock = std::chrono::steady_clock;

  void read_events();
  bool take_events();  // whether there was one
  void take_event(int folder, std::uint32_t mask, const std::string& name);
  void note_writer(std::uint32_t mask, const std::string& path);
  void follow_folders();

  void schedule_look(upstream::Trigger trigger);
  void look();
  [[nodiscard]] bool differs(const FileMarks& now) const;
  void poll_later();
  void poll();
  [[nodiscard]] std::string signature() const;
  [[nodiscard]] FileMarks current_marks() const;

  [[nodiscard]] bool being_written();
  void wait_for_writers();
  void run_waiting();

  boost::asio::io_context& io_;
  config::FileReader read_;
  Events events_;
  Timing timing_;

  FileMarks seen_;                                    // what the last look found
  FileMarks tried_;                                   // what the caller read last
  FileMarks told_;                                    // what the caller was told of since
  std::string last_signature_;                        // sizes, times and inodes at the last event
  std::set<std::string> targets_;                     // the files themselves, symlinks followed
  std::map<int, std::string> folders_;                // by watch descriptor
  std::map<std::string, Clock::time_point> writers_;  // open for writing since
  std::vector<std::function<void()>> waiting_;

  boost::asio::posix::stream_descriptor inotify_;
  alignas(8) std::array<char, 16 * 1024> buffer_{};
  boost::asio::steady_timer settle_timer_, poll_timer_, writer_timer_;
  bool look_scheduled_ = false;
  upstream::Trigger look_trigger_ = upstream::Trigger::watch;
  Clock::time_point first_event_{};
};

}  // namespace clockwise::runtime
