// The history of ring changes: what is kept of each, how much of it, and the text in which it
// outlives the process.
//
// Pure: the Directory holds the history, the control thread writes the text to a file.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "upstream/plan.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

using WallClock = std::chrono::system_clock;

enum class Trigger { start, watch, poll, signal, api };
[[nodiscard]] std::string_view to_string(Trigger) noexcept;

// One ring change (history; GET /api/v1/remaps).
struct Remap {
  std::uint64_t id = 0;
  WallClock::time_point time{};
  std::string cause;  // reload, api
  Trigger trigger = Trigger::start;
  bool forced = false;
  Report report;
  std::string before;  // the pool before the change, for the way back: see upstream/placed.h
  // What the limits below took away from `report`; with its servers goes `before`.
  std::size_t moves_omitted = 0, servers_omitted = 0;
  std::uint64_t counted_before = 0;         // requests it moved that an earlier process counted
  std::shared_ptr<const RemapWatch> watch;  // counts the requests it moves
  // The same change under other indexes, after its list was reordered without moving a key.
  std::vector<std::shared_ptr<const RemapWatch>> continued;

  [[nodiscard]] std::uint64_t remapped_requests() const;
};

using RemapPtr = std::shared_ptr<const Remap>;
using History = std::vector<RemapPtr>;  // newest first

inline constexpr std::size_t kHistory = 100;

// A change of 1,000 servers may have a million moves; what the whole history may hold of them.
struct HistoryLimits {
  std::size_t moves;
  std::size_t servers;
};
inline constexpr HistoryLimits kInMemory{.moves = 1'000'000, .servers = 200'000};
inline constexpr HistoryLimits kInFile{.moves = 200'000, .servers = 100'000};

// What has to be replaced so that the history keeps the limits, and by what: the oldest changes
// lose their moves first, and only then their servers. The newest change keeps its servers.
[[nodiscard]] std::vector<std::pair<RemapPtr, RemapPtr>> above(const HistoryLimits& limits,
                                                               const History& history);

// The entry of GET /api/v1/remaps: id, `time` as given, …, and the REPORT without guard and keys.
// "moves_omitted" and "servers_omitted" stand there only when something was.
[[nodiscard]] boost::json::object to_json(const Remap& remap, boost::json::value time);

struct SavedHistory {
  std::uint64_t last_id = 0;  // of the newest change there ever was
  std::vector<Remap> remaps;  // newest first, at most kHistory
};

// The text of the file, within kInFile. Times are kept to the millisecond.
[[nodiscard]] std::string history_text(const History& history, std::uint64_t last_id);

// Reads it back. The error says what is wrong with the text: damaged, of another program or of a
// version that is not known.
[[nodiscard]] Result<SavedHistory> parse_history(std::string_view text);

}  // namespace clockwise::upstream
