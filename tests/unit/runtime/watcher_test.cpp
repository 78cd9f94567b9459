#include "runtime/watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

namespace clockwise::runtime {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using upstream::Trigger;

constexpr auto kDeadline = 20s;

std::variant<std::string, std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  using Content = std::variant<std::string, std::string>;
  if (!file || !fs::is_regular_file(path)) return Content(std::in_place_index<1>, "absent");
  return Content(std::in_place_index<0>, std::string(std::istreambuf_iterator<char>(file), {}));
}

void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

class WatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "clockwise-watch-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ / "clockwise.yaml";
    write(file_, "one");
  }
  void TearDown() override {
    watcher_.reset();
    fs::remove_all(folder_);
  }

  // By events alone unless a test says otherwise: the regular look is a minute away.
  void start(Watcher::Timing timing = {.settle = 20ms, .poll = 60s, .writer = 60s}) {
    watcher_ = std::make_unique<Watcher>(
        io_, read_text,
        Watcher::Events{.changed = [this](Trigger trigger) { triggers_.push_back(trigger); },
                        .up =
                            [this](bool up) {
                              up_ = up;
                              ++looks_;
                            }},
        timing);
    FileMarks marks;
    marking(read_text, marks)(file_);
    watcher_->watch(marks);
    ASSERT_TRUE(run_until([this] { return looks_ > 0; }));
  }

  bool run_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition() && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
    return condition();
  }
  bool changes(std::size_t count) {
    return run_until([&] { return triggers_.size() == count; });
  }
  // Whether everything that is under way was looked at: a change of its own, seen as the only one.
  void settle_with_no_change() {
    const int before = looks_;
    write(folder_ / "neighbour", "any event");
    ASSERT_TRUE(run_until([&] { return looks_ > before; }));
    EXPECT_TRUE(triggers_.empty());
  }

  fs::path folder_, file_;
  boost::asio::io_context io_;
  std::unique_ptr<Watcher> watcher_;
  std::vector<Trigger> triggers_;
  bool up_ = true;
  int looks_ = 0;
};

TEST_F(WatcherTest, SeesAWriteInPlace) {
  start();
  write(file_, "two");
  ASSERT_TRUE(changes(1));
  EXPECT_EQ(triggers_[0], Trigger::watch);
}

TEST_F(WatcherTest, SeesEveryRenameOverTheFile) {
  start();
  for (std::size_t i = 1; i <= 3; ++i) {
    write(folder_ / "fresh", std::to_string(i));
    fs::rename(folder_ / "fresh", file_);
    ASSERT_TRUE(changes(i));
  }
}

TEST_F(WatcherTest, SeesAKubernetesSwap) {
  fs::remove(file_);
  fs::create_directory(folder_ / "..v1");
  fs::create_directory(folder_ / "..v2");
  fs::create_directory(folder_ / "..v3");
  write(folder_ / "..v1" / "clockwise.yaml", "one");
  write(folder_ / "..v2" / "clockwise.yaml", "two");
  write(folder_ / "..v3" / "clockwise.yaml", "three");
  fs::create_symlink("..v1", folder_ / "..data");
  fs::create_symlink("..data/clockwise.yaml", file_);
  start();
  std::size_t expected = 0;
  for (const char* version : {"..v2", "..v3"}) {
    fs::create_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    ASSERT_TRUE(changes(++expected)) << version;
  }
}

TEST_F(WatcherTest, FollowsASymlinkToItsTarget) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directory(elsewhere);
  fs::rename(file_, elsewhere / "real.yaml");
  fs::create_symlink(elsewhere / "real.yaml", file_);
  start();
  write(elsewhere / "real.yaml", "two");
  ASSERT_TRUE(changes(1));
  write(elsewhere / "other.yaml", "three");
  fs::remove(file_);
  fs::create_symlink("elsewhere/other.yaml", file_);
  ASSERT_TRUE(changes(2));
  write(elsewhere / "other.yaml", "four");
  EXPECT_TRUE(changes(3));
}

TEST_F(WatcherTest, SeesADeletedFileAndItsReturn) {
  start();
  EXPECT_TRUE(up_);
  fs::remove(file_);
  ASSERT_TRUE(changes(1));
  EXPECT_FALSE(up_);
  write(file_, "one");
  ASSERT_TRUE(changes(2));
  EXPECT_TRUE(up_);
}

TEST_F(WatcherTest, ASaveWithoutAChangeIsNone) {
  start();
  write(file_, "one");
  settle_with_no_change();
}

TEST_F(WatcherTest, ABurstIsOneChange) {
  start();
  for (int i = 0; i < 50; ++i) write(file_, std::to_string(i));
  ASSERT_TRUE(changes(1));
  const int before = looks_;
  write(folder_ / "neighbour", "any event");
  ASSERT_TRUE(run_until([&] { return looks_ > before; }));
  EXPECT_EQ(triggers_.size(), 1u);
}

TEST_F(WatcherTest, TheRegularLookFindsWhatGivesNoEvent) {
  start({.settle = 10ms, .poll = 20ms, .writer = 60s});
  // A watch on a folder does not see the content of a file that is linked into it and written under
  // its other name.
  const fs::path outside = folder_.string() + "-outside";
  fs::create_hard_link(file_, outside);
  write(outside, "two");
  ASSERT_TRUE(changes(1));
  fs::remove(outside);
  EXPECT_EQ(triggers_[0], Trigger::poll);
}

TEST_F(WatcherTest, WaitsForAWriterToClose) {
  start();
  std::ofstream writer(file_, std::ios::app);
  writer << "half" << std::flush;
  bool ran = false;
  watcher_->when_written([&] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(triggers_.empty());
  writer << "whole" << std::flush;
  writer.close();
  ASSERT_TRUE(run_until([&] { return ran; }));
  EXPECT_TRUE(changes(1));
}

TEST_F(WatcherTest, DoesNotWaitForAWriterForEver) {
  start({.settle = 10ms, .poll = 60s, .writer = 50ms});
  std::ofstream writer(file_, std::ios::app);
  writer << "half" << std::flush;
  bool ran = false;
  watcher_->when_written([&] { ran = true; });
  EXPECT_TRUE(run_until([&] { return ran; }));
  EXPECT_TRUE(changes(1));
}

TEST_F(WatcherTest, AChangeBeforeTheWatchIsSeen) {
  watcher_ = std::make_unique<Watcher>(
      io_, read_text,
      Watcher::Events{.changed = [this](Trigger trigger) { triggers_.push_back(trigger); },
                      .up = {}},
      Watcher::Timing{.settle = 10ms, .poll = 60s, .writer = 60s});
  FileMarks marks;
  marking(read_text, marks)(file_);
  write(file_, "two");
  watcher_->watch(marks);
  EXPECT_TRUE(changes(1));
}

// The caller looked while the file was half written; then it became what it was before.
TEST_F(WatcherTest, SeesWhatDiffersFromTheLastTryAlthoughItIsWhatTheLastLookFound) {
  start();
  FileMarks half;
  marking([](const std::string&) { return read_text("/nowhere"); }, half)(file_);
  watcher_->watch(half);
  ASSERT_TRUE(changes(1));
  watcher_->watch(half);  // told once, whatever the caller makes of it
  triggers_.clear();
  settle_with_no_change();
  FileMarks whole;
  marking(read_text, whole)(file_);
  watcher_->watch(whole);
  triggers_.clear();
  settle_with_no_change();
}

}  // namespace
}  // namespace clockwise::runtime
