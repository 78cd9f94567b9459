// A memcached client's octets give the same commands and refusals however they are cut; what is
// taken is sent on as a line that reads as the same command.
#include <algorithm>
#include <string>
#include <vector>

#include "../tests/unit/memcached/splits.h"
#include "memcached/command.h"
#include "splits.h"

namespace {

using namespace clockwise::memcached;
using clockwise::fuzz::require;

constexpr std::uint32_t kLargest = 1000;

struct Scan {
  Scanned scanned = Scanned::more;
  Command command;
  Refusal refusal;
};

Scan scan(std::string_view octets, std::size_t& seen) {
  Scan result;
  result.scanned = scan_command(octets, kLargest, seen, result.command, result.refusal);
  return result;
}

std::string summary_of(const Scan& scan) {
  return test::summary(scan.scanned, scan.command, scan.refusal);
}

// In memory of its own, behind which nothing may be read.
std::string scan_alone(std::string_view octets, std::size_t& seen) {
  const std::vector<char> copy(octets.begin(), octets.end());
  return summary_of(scan({copy.data(), copy.size()}, seen));
}

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_keys(const Command& command) {
  require(!command.key.empty() && command.key.size() <= kMaxKey);
  std::uint32_t keys = 1;
  std::string_view rest = command.rest;
  for (std::string_view key = next_word(rest); !key.empty(); key = next_word(rest)) {
    require(key.size() <= kMaxKey);
    ++keys;
  }
  require(keys == command.keys);
}

void check_round_trip(const Command& command) {
  std::string line;
  append_line(command, line);
  std::size_t seen = 0;
  const Scan again = scan(line, seen);
  require(again.scanned == Scanned::command && again.command.line_size == line.size());
  require(again.command.verb == command.verb && again.command.key == command.key);
  require(again.command.flags == command.flags && again.command.exptime == command.exptime);
  require(again.command.length == command.length && again.command.number == command.number);
  require(again.command.base64_key == command.base64_key);
  require(!again.command.noreply && !again.command.quiet);
  std::string twice;
  append_line(again.command, twice);
  require(twice == line);
}

void check_command(const Command& command, std::string_view line) {
  require(lies_in(command.key, line) && lies_in(command.rest, line));
  require(command.length <= kLargest);
  std::string scratch;
  require(ring_key(command, scratch).empty() == command.key.empty());
  if (is_retrieval(command.verb)) return check_keys(command);
  check_round_trip(command);
}

// How much of the input belongs to the first command.
std::size_t check(std::string_view input, clockwise::fuzz::Cuts& cuts) {
  std::size_t seen = 0;
  const Scan whole = scan(input, seen);
  const std::string said = summary_of(whole);
  require(test::in_pieces(input, [&] { return cuts.next(); }, scan_alone) == said);
  if (whole.scanned == Scanned::more) return input.size();
  const Refusal& refusal = whole.refusal;
  require(refusal.answer.empty() || refusal.answer.ends_with("\r\n"));
  if (whole.scanned == Scanned::hopeless) return input.size();
  const std::size_t size = whole.command.line_size;
  require(size > 0 && size <= input.size() && input[size - 1] == '\n');
  require(input.find('\n') == size - 1);
  require(refusal.answer.empty() == (whole.scanned == Scanned::command));
  require(!refusal.deletes_key || (refusal.skip > kLargest && !whole.command.key.empty()));
  if (whole.scanned == Scanned::refused) return size + refusal.skip;
  check_command(whole.command, input.substr(0, size));
  return size + (is_storage(whole.command.verb) ? whole.command.length + std::size_t{2} : 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  clockwise::fuzz::Cuts cuts(octets[0]);
  while (!input.empty()) input.remove_prefix(std::min(check(input, cuts), input.size()));
  return 0;
}
