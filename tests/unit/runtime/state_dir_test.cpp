#include "runtime/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace clockwise::runtime {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class StateDirTest : public testing::Test {
 protected:
  StateDirTest() {
    std::string name = (fs::temp_directory_path() / "clockwise-state-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = (root_ / "state").string();
    file_ = root_ / "state" / "remaps.json";
  }
  ~StateDirTest() override { fs::remove_all(root_); }

  std::unique_ptr<StateDir> open() {
    auto opened = StateDir::open(folder_);
    if (!opened) ADD_FAILURE() << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  static upstream::View with_changes(std::uint64_t newest) {
    upstream::View view;
    view.last_remap_id = newest;
    for (std::uint64_t id = newest; id > 0; --id) {
      upstream::Remap remap;
      remap.id = id;
      remap.cause = "reload";
      remap.report.pool = "pages";
      view.history.push_back(std::make_shared<const upstream::Remap>(std::move(remap)));
    }
    return view;
  }
  void write(const std::string& text) {
    fs::create_directories(folder_);
    std::ofstream(file_) << text;
  }

  fs::path root_, file_;
  std::string folder_;
};

TEST_F(StateDirTest, MakesTheFolderForItsOwnerAlone) {
  const auto state = open();
  ASSERT_TRUE(state);
  struct stat facts{};
  ASSERT_EQ(::stat(folder_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700U);
  EXPECT_THAT(state->load().remaps, IsEmpty());
}

TEST_F(StateDirTest, ASlashAtTheEndChangesNothing) {
  folder_ += "/";
  ASSERT_TRUE(open());
  struct stat facts{};
  ASSERT_EQ(::stat(folder_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700U);
}

TEST_F(StateDirTest, TheNextProcessFindsWhatWasSaved) {
  open()->save(with_changes(3));
  const upstream::SavedHistory found = open()->load();
  EXPECT_EQ(found.last_id, 3U);
  ASSERT_EQ(found.remaps.size(), 3U);
  EXPECT_EQ(found.remaps[0].id, 3U);
  EXPECT_FALSE(fs::exists(file_.string() + ".new"));
}

TEST_F(StateDirTest, WhatDidNotChangeIsNotWrittenAgain) {
  const auto state = open();
  state->save(with_changes(2));
  fs::remove(file_);
  state->save(with_changes(2));
  EXPECT_FALSE(fs::exists(file_));
  state->save(with_changes(3));
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(StateDirTest, RequestsThatAreCountedLaterAreAChange) {
  const auto state = open();
  upstream::View view = with_changes(1);
  upstream::Remap counted = *view.history[0];
  auto watch = std::make_shared<upstream::RemapWatch>(1);
  counted.watch = watch;
  view.history[0] = std::make_shared<const upstream::Remap>(std::move(counted));
  state->save(view);
  watch->requests.at(0).cell.add(5);
  state->save(view);
  EXPECT_EQ(state->load().remaps.at(0).remapped_requests(), 5U);
}

TEST_F(StateDirTest, ADamagedFileIsPutAside) {
  for (const std::string text : {"", "{", "[]", "{\"format\": \"other\"}", "\x01\x02"}) {
    write(text);
    const auto state = open();
    EXPECT_THAT(state->load().remaps, IsEmpty()) << text;
    EXPECT_FALSE(fs::exists(file_)) << text;
    std::ifstream aside(file_.string() + ".bad");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(aside), {}), text);
    state->save(with_changes(1));
    EXPECT_EQ(state->load().last_id, 1U);
  }
}

TEST_F(StateDirTest, OneProcessAtATime) {
  const auto first = open();
  const auto second = StateDir::open(folder_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
}

TEST_F(StateDirTest, AFolderThatCannotBeUsedIsAnError) {
  std::ofstream(root_ / "file") << "x";
  const std::string file = (root_ / "file").string();
  const std::vector<std::string> folders{file, file + "/state", "/proc/clockwise"};
  for (const std::string& folder : folders) {
    const auto opened = StateDir::open(folder);
    ASSERT_FALSE(opened) << folder;
    EXPECT_THAT(opened.error().message, HasSubstr("state_dir: \"" + folder + "\""));
  }
}

TEST_F(StateDirTest, ACheckMakesNothing) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_FALSE(check_state_dir((root_ / "file").string()));
  EXPECT_FALSE(check_state_dir((root_ / "file" / "state").string()));
  EXPECT_TRUE(check_state_dir(folder_ + "/below"));
  EXPECT_TRUE(check_state_dir(root_.string()));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StateDirTest, AFolderThatGoesAwayIsMadeAgain) {
  const auto state = open();
  state->save(with_changes(1));
  fs::remove_all(folder_);
  state->save(with_changes(1));  // nothing new, but nothing kept any more either
  struct stat facts{};
  ASSERT_EQ(::stat(folder_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700U);
  EXPECT_EQ(state->load().last_id, 1U);
  EXPECT_FALSE(*StateDir::open(folder_)) << "the new folder is locked too";
}

TEST_F(StateDirTest, AFolderThatIsEmptiedIsLockedAgain) {
  const auto state = open();
  for (const fs::path& inside : {file_, root_ / "state" / "lock"}) fs::remove(inside);
  state->save(with_changes(1));
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_FALSE(*StateDir::open(folder_));
}

TEST_F(StateDirTest, AFolderThatAnotherProcessTookIsLeftToIt) {
  const auto state = open();
  fs::remove_all(folder_);
  auto other = open();
  other->save(with_changes(7));
  state->save(with_changes(1));
  EXPECT_EQ(other->load().last_id, 7U);
  other.reset();
  state->save(with_changes(1));
  EXPECT_EQ(state->load().last_id, 1U);
}

TEST_F(StateDirTest, AFolderThatCannotBeMadeAgainStopsNothing) {
  const auto state = open();
  fs::remove_all(folder_);
  std::ofstream(folder_) << "in its place";
  state->save(with_changes(1));
  EXPECT_TRUE(fs::is_regular_file(folder_));
  fs::remove(folder_);
  state->save(with_changes(1));
  EXPECT_EQ(state->load().last_id, 1U);
}

}  // namespace
}  // namespace clockwise::runtime
