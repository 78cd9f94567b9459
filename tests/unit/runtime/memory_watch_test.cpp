// What `overload.memory: auto` finds on a machine, and when memory is short.
#include "runtime/memory_watch.h"

#include <gtest/gtest.h>

#include <map>

namespace clockwise::runtime {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

TextReader files(std::map<std::string, std::string> texts) {
  return [texts = std::move(texts)](const std::string& path) -> std::optional<std::string> {
    const auto found = texts.find(path);
    if (found == texts.end()) return std::nullopt;
    return found->second;
  };
}

TEST(MemoryLimit, VersionTwoTakesTheLeastOfAllGroupsAbove) {
  EXPECT_EQ(memory_limit_of_group(files({{"/proc/self/cgroup", "0::/a/b\n"},
                                         {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                                         {"/sys/fs/cgroup/a/memory.max", "104857600\n"}})),
            100 * kMiB);
  EXPECT_EQ(memory_limit_of_group(files({{"/proc/self/cgroup", "0::/a/b\n"},
                                         {"/sys/fs/cgroup/a/b/memory.max", "52428800\n"},
                                         {"/sys/fs/cgroup/a/memory.max", "104857600\n"}})),
            50 * kMiB);
}

TEST(MemoryLimit, InsideAContainerOnlyTheRootMayBeSeen) {
  EXPECT_EQ(memory_limit_of_group(files({{"/proc/self/cgroup", "0::/docker/0123\n"},
                                         {"/sys/fs/cgroup/memory.max", "104857600\n"}})),
            100 * kMiB);
  EXPECT_EQ(memory_limit_of_group(files(
                {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "104857600\n"}})),
            100 * kMiB);
}

TEST(MemoryLimit, VersionOne) {
  const std::string groups = "12:pids:/x\n7:hugetlb,memory:/x\n1:name=systemd:/x\n";
  EXPECT_EQ(memory_limit_of_group(
                files({{"/proc/self/cgroup", groups},
                       {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "104857600\n"}})),
            100 * kMiB);
  EXPECT_EQ(memory_limit_of_group(
                files({{"/proc/self/cgroup", groups},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}})),
            std::nullopt);
}

TEST(MemoryLimit, NoneWhereNothingSaysSo) {
  EXPECT_EQ(memory_limit_of_group(files({})), std::nullopt);
  EXPECT_EQ(memory_limit_of_group(files({{"/proc/self/cgroup", "garbage\n0::/\n:\n"}})),
            std::nullopt);
}

TEST(MemoryThreshold, IsAShareOfTheGroupOrWhatTheFileSays) {
  const auto group =
      files({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "104857600\n"}});
  using Memory = config::Overload::Memory;
  EXPECT_EQ(memory_threshold({Memory::automatic, 0}, group), 85 * kMiB);
  EXPECT_EQ(memory_threshold({Memory::automatic, 0}, files({})), std::nullopt);
  EXPECT_EQ(memory_threshold({Memory::fixed, 7 * kMiB}, group), 7 * kMiB);
  EXPECT_EQ(memory_threshold({Memory::off, 0}, group), std::nullopt);
}

TEST(MemoryIsShort, AboveTheThresholdUntilClearlyBelowIt) {
  EXPECT_FALSE(memory_is_short(100, 100, false));
  EXPECT_TRUE(memory_is_short(101, 100, false));
  EXPECT_TRUE(memory_is_short(96, 100, true));
  EXPECT_FALSE(memory_is_short(94, 100, true));
}

TEST(MemoryWatch, TellsTheWorkersAndTakesItBack) {
  boost::asio::io_context io;
  const auto admission = std::make_shared<proxy::Admission>();
  MemoryWatch watch(io, admission);
  watch.configure({config::Overload::Memory::fixed, 1});
  EXPECT_TRUE(admission->short_of_memory);
  watch.configure({config::Overload::Memory::fixed, std::uint64_t{1} << 60U});
  EXPECT_FALSE(admission->short_of_memory);
  watch.configure({config::Overload::Memory::fixed, 1});
  watch.configure({config::Overload::Memory::off, 0});
  EXPECT_FALSE(admission->short_of_memory);
}

}  // namespace
}  // namespace clockwise::runtime
