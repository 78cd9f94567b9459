// Who `user` is, and that there is no way back from being that user.
#include "runtime/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

namespace clockwise::runtime {
namespace {

using testing::HasSubstr;

TEST(Identity, NobodyIsAskedFor) { EXPECT_EQ(identity_of("").value(), std::nullopt); }

TEST(Identity, AnUnknownUserOrGroupIsNamed) {
  EXPECT_THAT(identity_of("no-such-user").error().message, HasSubstr("no user \"no-such-user\""));
  EXPECT_THAT(identity_of("root:no-such-group").error().message,
              HasSubstr("no group \"no-such-group\""));
}

TEST(Identity, OnlyRootBecomesSomeoneElse) {
  const auto who = identity_of("nobody");
  if (::geteuid() != 0) {
    EXPECT_THAT(who.error().message, HasSubstr("only root"));
  } else {
    ASSERT_TRUE(who.has_value());
    EXPECT_NE((*who)->uid, 0u);
  }
}

// In a child, since the test itself could not go on.
int exit_code_of(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Become, LeavesNoWayBack) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const Identity who = *identity_of("nobody").value();
  EXPECT_EQ(exit_code_of([&] {
              if (!become(who)) return 1;
              if (::getuid() != who.uid || ::getegid() != who.gid) return 2;
              if (::setuid(0) == 0 || ::seteuid(0) == 0 || ::setegid(0) == 0) return 3;
              gid_t groups[64];
              const int count = ::getgroups(64, groups);
              for (int i = 0; i < count; ++i)
                if (groups[i] == 0) return 4;
              return ::access("/proc/self/fd", R_OK) == 0 ? 0 : 5;
            }),
            0);
}

TEST(Become, WhoIsNotRootCannot) {
  EXPECT_EQ(exit_code_of([] {
              if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
              return become({.user = "root", .uid = 0, .gid = 0}).has_value() ? 2 : 0;
            }),
            0);
}

TEST(FilesFor, BelongToTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  char folder[] = "/tmp/clockwise-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Identity who = *identity_of("nobody").value();
  config::Config config;
  config.access_log = config::AccessLog{.file = std::string(folder) + "/access.log"};
  config.state_dir = std::string(folder) + "/state";
  ASSERT_TRUE(make_files_for(who, config).has_value());
  ASSERT_TRUE(make_files_for(who, config).has_value()) << "what is there already stays";
  for (const std::string& path : {config.access_log->file, config.state_dir}) {
    struct stat facts{};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, who.uid) << path;
    EXPECT_EQ(facts.st_mode & 07, 0u) << path;
  }
  std::filesystem::remove_all(folder);
}

TEST(ActingAs, EndsWithItsScope) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  {
    const ActingAs user(identity_of("nobody").value());
    EXPECT_NE(::geteuid(), 0u);
  }
  EXPECT_EQ(::geteuid(), 0u);
  const ActingAs nobody_special{std::nullopt};
  EXPECT_EQ(::geteuid(), 0u);
}

}  // namespace
}  // namespace clockwise::runtime
