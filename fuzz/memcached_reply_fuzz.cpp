// A memcached server's octets give the same lines however they are cut, and a line that is taken is
// one that a server prints: its numbers, printed again, are the line.
#include <algorithm>
#include <string>
#include <vector>

#include "../tests/unit/memcached/splits.h"
#include "memcached/reply.h"
#include "splits.h"

namespace {

using namespace clockwise::memcached;
using clockwise::fuzz::require;

constexpr std::uint32_t kLargest = 1000;

// In memory of its own, behind which nothing may be read.
std::string scan_alone(std::string_view octets, std::size_t& seen) {
  const std::vector<char> copy(octets.begin(), octets.end());
  Reply reply;
  const ReplyScan scanned = scan_reply({copy.data(), copy.size()}, kLargest, seen, reply);
  return test::summary(scanned, reply);
}

void check_value(const Reply& reply) {
  require(reply.length <= kLargest);
  std::string line;
  if (reply.key.empty()) {
    line = "VA " + std::to_string(reply.length);
    if (!reply.rest.empty()) line.append(" ").append(reply.rest);
  } else {
    line.append("VALUE ").append(reply.key).append(" ").append(std::to_string(reply.flags));
    line.append(" ").append(std::to_string(reply.length));
    if (reply.has_unique) line.append(" ").append(std::to_string(reply.number));
  }
  require(line == reply.line);
}

void check_flags(std::string_view flags) {
  std::string_view rest = flags;
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    bool found = false;
    const std::string_view value = meta_flag(flags, word.front(), found);
    require(found && value.data() > flags.data());
    require(value.data() + value.size() <= flags.data() + flags.size());
  }
}

// How much of the input belongs to the first answer.
std::size_t check(std::string_view input, clockwise::fuzz::Cuts& cuts) {
  std::size_t seen = 0;
  Reply reply;
  const ReplyScan scanned = scan_reply(input, kLargest, seen, reply);
  const std::string said = test::summary(scanned, reply);
  require(test::in_pieces(input, [&] { return cuts.next(); }, scan_alone) == said);
  if (scanned != ReplyScan::complete) return input.size();
  require(reply.size <= input.size() && reply.size == reply.line.size() + 2);
  require(reply.line.data() == input.data());
  require(input.substr(reply.line.size(), 2) == "\r\n");
  check_flags(reply.rest);
  if (reply.kind == ReplyKind::number) require(reply.line == std::to_string(reply.number));
  if (reply.kind != ReplyKind::value) return reply.size;
  check_value(reply);
  return reply.size + std::size_t{reply.length} + 2;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  clockwise::fuzz::Cuts cuts(octets[0]);
  while (!input.empty()) input.remove_prefix(std::min(check(input, cuts), input.size()));
  return 0;
}
