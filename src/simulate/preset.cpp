#include "simulate/preset.h"

#include <fmt/format.h>

#include <array>

namespace clockwise::simulate {
namespace {

using ring::Placement;

Nodes nodes(std::initializer_list<std::string_view> names) {
  Nodes list;
  for (const std::string_view name : names) list.push_back({std::string(name)});
  return list;
}

Contestant modulo(std::string_view hash, std::uint32_t bits) {
  Contestant made;
  made.scheme.placement = Placement::modulo;
  made.scheme.hash = hash;
  made.scheme.bits = bits;
  return made;
}

Contestant custom(std::string_view hash, std::uint32_t bits, std::string_view label,
                  std::uint32_t points) {
  Contestant made = modulo(hash, bits);
  made.scheme.placement = Placement::custom;
  made.scheme.label = label;
  made.scheme.points = points;
  return made;
}

std::string tokens(const Row& row) {
  if (!row.points) return "modulo";
  return fmt::format("{} token{}", *row.points, *row.points == 1 ? "" : "s");
}

// "A=24841 B=24912 C=25394 D=24853"
std::string named_counts(const Row& row) {
  std::string text;
  for (const auto& [name, count] : row.counts)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, count);
  return text;
}

// --- sha256-3to4 -------------------------------------------------------------------------------

std::vector<Trial> sha256_trials() {
  const Change growth{nodes({"A", "B", "C"}), nodes({"A", "B", "C", "D"})};
  return {{modulo("sha256", 256), growth},
          {custom("sha256", 256, "node:{name}:{i}", 1), growth},
          {custom("sha256", 256, "node:{name}:{i}", 128), growth}};
}

std::string sha256_text(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("{} changed={} {}\n", tokens(row), row.moved, named_counts(row));
  return text;
}

// --- sha1-4to5 ---------------------------------------------------------------------------------

// The loads were published for the four servers, so two trials change nothing.
std::vector<Trial> sha1_trials() {
  const Nodes four = nodes({"a", "b", "c", "d"});
  const Change growth{four, nodes({"a", "b", "c", "d", "e"})};
  return {{modulo("sha1", 32), growth},
          {custom("sha1", 32, "{name}#{i}", 150), growth},
          {custom("sha1", 32, "{name}#{i}", 1), {four, four}},
          {custom("sha1", 32, "{name}#{i}", 150), {four, four}}};
}

std::string sha1_text(std::span<const Row> rows) {
  const Row& ring = rows[1];
  const bool all_to_newcomer = ring.moved == ring.counts.back().second;
  std::string text =
      fmt::format("moved share: modulo {}, ring {}{}\n", rows[0].moved_ratio(), ring.moved_ratio(),
                  all_to_newcomer ? ", all to " + ring.counts.back().first : "");
  for (const Row& row : rows.subspan(2))
    text += fmt::format("{} {}\n", tokens(row), named_counts(row));
  return text;
}

// --- siphash-4to5 ------------------------------------------------------------------------------

std::vector<Trial> siphash_trials() {
  const Change growth{nodes({"0", "1", "2", "3"}), nodes({"0", "1", "2", "3", "4"})};
  Contestant ring;
  ring.kind = Kind::siphash;
  Contestant control;
  control.kind = Kind::siphash_modulo;
  std::vector<Trial> trials = sweep({ring}, {1, 10, 50, 100, 200, 500}, growth);
  trials.insert(trials.begin(), {control, growth});
  return trials;
}

std::string siphash_text(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{} moved {}, load", tokens(row), row.moved);
    for (const auto& [name, count] : row.counts) text += fmt::format(" {}", count);
    text += '\n';
  }
  return text;
}

const std::array<Preset, 3> kPresets{{
    {"sha256-3to4",
     "SHA-256, all 256 bits; token i of server S is \"node:S:i\"; keys key:0 to key:99999; servers "
     "A,B,C, then D",
     "key:{}", sha256_trials, sha256_text},
    {"sha1-4to5",
     "SHA-1, the first four octets; token i of server S is \"S#i\"; keys order:0 to order:99999; "
     "servers a,b,c,d, then e",
     "order:{}", sha1_trials, sha1_text},
    {"siphash-4to5",
     "SipHash-1-3 as Rust's DefaultHasher hashes (u32, u32) and &str; keys key:0 to key:99999; "
     "servers 0,1,2,3, then 4",
     "key:{}", siphash_trials, siphash_text},
}};

}  // namespace

std::span<const Preset> presets() noexcept { return kPresets; }

}  // namespace clockwise::simulate
