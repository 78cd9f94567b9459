// `clockwise init [FILE]`: a commented starter configuration.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "cli/cli.h"

namespace clockwise::cli {
namespace {

constexpr std::string_view kStarter = R"(# yaml-language-server: $schema=./clockwise.schema.json
#
# A starter: change the addresses, then
#   clockwise check -c FILE    says whether it is valid, and what is not
#   clockwise serve -c FILE    runs it; a saved change is picked up at once
# docs/configuration.md has every option with its default and the reason for it.

listeners:
  - name: web
    address: 0.0.0.0:8080        # where clients connect; port 0 takes a free one
    pool: pages                  # a key of `pools` below

pools:
  pages:
    ring:
      points: 1024               # virtual nodes per unit of weight: more are more even, and cost memory
      key: "{uri}"               # what decides the server: path and query as received
    servers:
      # The name is the identity on the ring. A new address under an old name moves no key;
      # a new name takes over its share of the keys, and no other key moves.
      - {name: cache-1, address: 127.0.0.1:8081}
      - {name: cache-2, address: 127.0.0.1:8082}
      - {name: cache-3, address: 127.0.0.1:8083, weight: 2}    # twice the keys of the others
    # Where people or automation scale often, keep the list in a file of its own instead:
    # servers_from: {file: upstreams.yaml}

    # A change that would move more of the keys, or drop more of the servers, is refused
    # unless it is forced.
    max_remap: 60%
    max_shrink: 50%

admin:
  address: 127.0.0.1:9901        # /metrics, /healthz, /api/v1/…; keep it off the public network
)";

int refuse(const std::string& file, std::string_view reason) {
  fmt::print(stderr, "{}: {}\n", file, reason);
  return kError;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

int init(const std::string& file) {
  const std::string path = file.empty() ? "clockwise.yaml" : file;
  // O_EXCL: whatever stands there, even a dangling link, is left alone.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0 && errno == EEXIST) return refuse(path, "exists already and is left as it is");
  if (descriptor < 0) return refuse(path, std::generic_category().message(errno));
  const bool written = write_all(descriptor, kStarter);
  const int write_error = errno;
  if (::close(descriptor) != 0 || !written) {
    ::unlink(path.c_str());
    return refuse(path, std::generic_category().message(written ? errno : write_error));
  }
  fmt::print("{0} is written; next: clockwise check -c {0}\n", path);
  return kOk;
}

}  // namespace clockwise::cli
