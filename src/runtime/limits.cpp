#include "runtime/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace clockwise::runtime {
namespace {

constexpr std::uint64_t kReserve = 64;           // admin, files, logs, the watch
constexpr std::uint64_t kOpenAtStart = 24;       // of these; some more are open in turns
constexpr std::uint64_t kReservePerWorker = 16;  // its loop, timers, idle server connections
constexpr std::uint64_t kFewest = 8;             // fewer connections are no service
constexpr std::uint64_t kMost = 1U << 18U;       // a limit of 10^9 descriptors is no promise

}  // namespace

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

std::uint64_t open_descriptors() {
  std::error_code failed;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end;
       at.increment(failed))
    ++count;
  return count == 0 ? 0 : count - 1;  // looking took one
}

DescriptorShares descriptor_shares(std::uint64_t descriptors, std::uint32_t workers) noexcept {
  constexpr std::uint64_t kHighest = std::numeric_limits<int>::max();
  const std::uint64_t all = std::min(descriptors, kHighest);
  const auto without = [all](std::uint64_t reserve) {
    return static_cast<int>(all - std::min(all, reserve));
  };
  return {.clients = without(kReserve + kReservePerWorker * workers),
          .servers = without(kReserve / 2)};
}

Result<std::uint32_t> automatic_connections(std::uint64_t descriptors, std::uint64_t inherited,
                                            std::uint32_t workers, std::size_t listeners) {
  const std::uint64_t sockets = std::uint64_t{workers} * std::max<std::size_t>(listeners, 1);
  // Descriptors are numbered from the lowest: what is open already takes of the clients' share.
  const std::uint64_t reserve =
      inherited + kOpenAtStart + kReserve + kReservePerWorker * workers + sockets;
  const std::uint64_t needed = reserve + 2 * kFewest * sockets;
  if (descriptors < needed)
    return fail(
        fmt::format("the limit of open files is {}: {} workers and {} listeners need at least {} "
                    "(raise it with "
                    "`ulimit -n` or LimitNOFILE=, or run fewer workers)",
                    descriptors, workers, listeners, needed));
  return static_cast<std::uint32_t>(std::min((descriptors - reserve) / 2 / sockets, kMost));
}

}  // namespace clockwise::runtime
