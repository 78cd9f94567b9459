// Any bytes as the file of the history, and as a pool that it remembers: no crash, and what is
// accepted is written and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "upstream/history.h"
#include "upstream/placed.h"

namespace {

using namespace clockwise::upstream;

void require(bool holds) {
  if (!holds) std::abort();
}

History shared(const SavedHistory& saved) {
  History history;
  for (const Remap& remap : saved.remaps) history.push_back(std::make_shared<const Remap>(remap));
  return history;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  if (const auto saved = parse_history(text)) {
    const std::string again = history_text(shared(*saved), saved->last_id);
    const auto second = parse_history(again);
    require(second && second->last_id == saved->last_id);
    require(second->remaps.size() == saved->remaps.size());
    require(history_text(shared(*second), second->last_id) == again);
  }
  if (const auto placed = parse_placed(text)) {
    const auto second = parse_placed(to_text(*placed));
    require(second && *second == *placed);
  }
  return 0;
}
