#include "runtime/privileges.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace clockwise::runtime {
namespace {

constexpr std::size_t kEntrySize = 16 * 1024;

Error failed(const std::string& what) {
  return fail(fmt::format("user: {}: {}", what, std::strerror(errno)));
}

std::optional<passwd> find_user(const std::string& name, std::array<char, kEntrySize>& memory) {
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found == nullptr) return std::nullopt;
  return entry;
}

std::optional<gid_t> find_group(const std::string& name) {
  std::array<char, kEntrySize> memory;
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found == nullptr) return std::nullopt;
  return entry.gr_gid;
}

bool is_standard(const std::string& file) { return file == "stderr" || file == "stdout"; }

Result<void> make_log_for(const Identity& who, const std::string& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (made < 0) return {};  // there already, or refused: what that means shows when it is opened
  const bool given = ::fchown(made, who.uid, who.gid) == 0;
  ::close(made);
  if (!given) return failed("cannot give " + file + " to " + who.user);
  return {};
}

Result<void> make_folder_for(const Identity& who, const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) return {};
  if (::lchown(folder.c_str(), who.uid, who.gid) != 0)
    return failed("cannot give " + folder + " to " + who.user);
  return {};
}

}  // namespace

Result<std::optional<Identity>> identity_of(const std::string& user) {
  if (user.empty()) return std::optional<Identity>{};
  const std::size_t colon = user.find(':');
  Identity who{.user = user.substr(0, colon), .uid = 0, .gid = 0};
  std::array<char, kEntrySize> memory;
  const auto entry = find_user(who.user, memory);
  if (!entry) return fail(fmt::format("user: there is no user \"{}\"", who.user));
  who.uid = entry->pw_uid;
  who.gid = entry->pw_gid;
  if (colon != std::string::npos) {
    const std::string name = user.substr(colon + 1);
    const auto gid = find_group(name);
    if (!gid) return fail(fmt::format("user: there is no group \"{}\"", name));
    who.gid = *gid;
  }
  if (::geteuid() != 0) {
    if (::geteuid() == who.uid && ::getegid() == who.gid) return std::optional<Identity>{};
    return fail(fmt::format("user: only root can become \"{}\"", user));
  }
  if (who.uid == 0) return std::optional<Identity>{};
  return std::optional(std::move(who));
}

Result<void> make_files_for(const Identity& who, const config::Config& config) {
  if (config.access_log && !is_standard(config.access_log->file))
    if (auto made = make_log_for(who, config.access_log->file); !made) return made.error();
  if (config.state_dir.empty()) return {};
  return make_folder_for(who, config.state_dir);
}

ActingAs::ActingAs(const std::optional<Identity>& who)
    : acting_(who && ::setegid(who->gid) == 0 && ::seteuid(who->uid) == 0) {}

ActingAs::~ActingAs() {
  if (acting_ && (::seteuid(0) != 0 || ::setegid(0) != 0)) std::abort();
}

void forgo_new_privileges() { ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

Result<void> become(const Identity& who) {
  if (::initgroups(who.user.c_str(), who.gid) != 0) return failed("cannot take the groups");
  if (::setresgid(who.gid, who.gid, who.gid) != 0) return failed("cannot take the group");
  if (::setresuid(who.uid, who.uid, who.uid) != 0) return failed("cannot take the user");
  const bool way_back =
      ::setuid(0) == 0 || ::seteuid(0) == 0 || (who.gid != 0 && ::setegid(0) == 0);
  if (way_back || ::getuid() != who.uid || ::geteuid() != who.uid || ::getegid() != who.gid)
    return fail(fmt::format("user: became \"{}\", but could be root again", who.user));
  // The change hides /proc/self from the process itself, which counts its descriptors there.
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

}  // namespace clockwise::runtime
