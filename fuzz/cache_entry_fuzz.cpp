// What other proxies keep in a store that is shared: an entry, a part or a list of purges that is
// read is one that would be written so, whatever the octets; and nothing else is read.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "cache/entry.h"
#include "cache/purge_list.h"
#include "cache/vary.h"
#include "splits.h"

namespace {

using namespace clockwise;
using namespace clockwise::cache;
using clockwise::fuzz::require;

bool is_within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_entry(std::string_view value) {
  const auto entry = read_entry(value);
  if (!entry) return;
  for (const std::string_view text :
       {entry->key, entry->head, entry->selectors, entry->tags, entry->body})
    require(is_within(text, value));
  require(entry->parts() <= kMostParts);
  std::string again = front_of(*entry);
  again += entry->body;
  again += packed_sum(crc32c(again));
  require(again == value);
  if (entry->kind != Entry::Kind::vary) require(pack(unpack(entry->selectors)) == entry->selectors);
  require(time_left(entry->terms, entry->terms.received_ms) >= 0);
}

void check_part(std::string_view value) {
  const auto octets = read_part(value, 0, 0);
  if (octets) require(is_within(*octets, value) && octets->size() + kPartMore == value.size());
}

void check_list(std::string_view value) {
  const auto list = PurgeList::unpack(value);
  if (!list) return;
  require(list->pack() == value);
  PurgeList merged;
  (void)merged.merge(*list);
  const std::string packed = merged.pack();
  require(packed.size() <= PurgeList::kMostOctets);
  require(merged.merge(*list).empty() && merged.pack() == packed);
  const auto read = PurgeList::unpack(packed);
  require(read && read->rules() == merged.rules());
  for (const std::int64_t ms : {std::int64_t{0}, std::int64_t{1} << 40})
    require(merged.on("http://a/", "b", ms) >= list->on("http://a/", "b", ms));
}

// In memory of its own, behind which nothing may be read.
void check(std::string_view octets) {
  const std::vector<char> copy(octets.begin(), octets.end());
  const std::string_view value(copy.data(), copy.size());
  check_entry(value);
  check_part(value);
  check_list(value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  const std::string_view input = clockwise::fuzz::text_of(octets, size);
  check(input);
  // No fuzzer finds a sum by itself.
  std::string summed(input);
  summed += packed_sum(crc32c(summed));
  check(summed);
  return 0;
}
