#include "metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace clockwise::metrics {

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::uint64_t count_open_fds() {
  std::error_code ec;
  std::filesystem::directory_iterator entries("/proc/self/fd", ec);
  if (ec) return 0;
  std::uint64_t n = 0;
  for (const auto end = std::filesystem::directory_iterator{}; entries != end && !ec;
       entries.increment(ec))
    ++n;
  return n > 0 ? n - 1 : 0;  // one of them was opened to look
}

}  // namespace

ProcessFacts read_process_facts() {
  ProcessFacts facts;
  if (rusage usage{}; getrusage(RUSAGE_SELF, &usage) == 0)
    facts.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  std::uint64_t total_pages = 0, resident_pages = 0;
  if (std::ifstream statm("/proc/self/statm"); statm >> total_pages >> resident_pages)
    facts.resident_bytes = resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  facts.open_fds = count_open_fds();
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = limit.rlim_cur;
  return facts;
}

}  // namespace clockwise::metrics
