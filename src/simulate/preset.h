// Published runs that `clockwise simulate --preset NAME` reproduces to the digit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/experiment.h"

namespace clockwise::simulate {

struct Preset {
  std::string_view name;   // sha256-3to4
  std::string_view about;  // hash, points, keys and servers of the run
  std::string_view key_format;
  std::vector<Trial> (*trials)();
  // The figures of the run in the words of its publication; `rows` are those of trials().
  std::string (*text)(std::span<const Row> rows);
};

// Each run has this many keys.
inline constexpr std::uint64_t kPresetKeys = 100'000;

[[nodiscard]] std::span<const Preset> presets() noexcept;

}  // namespace clockwise::simulate
