#include "import/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace clockwise::importer {
namespace {

constexpr std::array<std::string_view, 5> kNames{"nginx", "nutcracker", "haproxy", "mcrouter",
                                                 "envoy"};

struct Telltale {
  Format format;
  std::string_view start;  // a line that begins with this word, blanks before it skipped
  std::string_view rest;   // and has this in it
};

// The first line of a file that matches one of these decides.
constexpr std::array<Telltale, 17> kTelltales{{
    {Format::nginx, "upstream", "{"},
    {Format::nginx, "http", "{"},
    {Format::nginx, "events", "{"},
    {Format::nginx, "server", "{"},
    {Format::nginx, "proxy_pass", ";"},
    {Format::haproxy, "global", ""},
    {Format::haproxy, "defaults", ""},
    {Format::haproxy, "backend", ""},
    {Format::haproxy, "frontend", ""},
    {Format::haproxy, "balance", ""},
    {Format::envoy, "static_resources", ":"},
    {Format::envoy, "clusters", ":"},
    {Format::envoy, "lb_policy", ":"},
    {Format::nutcracker, "distribution", ":"},
    {Format::nutcracker, "auto_eject_hosts", ":"},
    {Format::nutcracker, "server_retry_timeout", ":"},
    {Format::nutcracker, "hash", ":"},
}};

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\"'-{");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

bool matches(const Telltale& telltale, std::string_view line) {
  if (!line.starts_with(telltale.start)) return false;
  const std::string_view rest = line.substr(telltale.start.size());
  constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
  if (!rest.empty() && kWord.find(rest.front()) != std::string_view::npos) return false;
  return rest.find(telltale.rest) != std::string_view::npos;
}

std::optional<Guess> by_content(std::string_view text) {
  // JSON with a route is mcrouter's, whatever else it holds.
  if (text.find("\"route\"") != std::string_view::npos && text.find('{') != std::string_view::npos)
    return Guess{Format::mcrouter, "it has a \"route\""};
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    for (const Telltale& telltale : kTelltales)
      if (matches(telltale, line))
        return Guess{telltale.format, fmt::format("it has a line \"{}\"", telltale.start)};
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Format format) noexcept {
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<Format> format_named(std::string_view name) noexcept {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Format>(found - kNames.begin());
}

std::span<const std::string_view> format_names() noexcept { return kNames; }

std::optional<Guess> guess_format(std::string_view path, std::string_view text) {
  const std::size_t slash = path.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (file.find(kNames[i]) != std::string_view::npos)
      return Guess{static_cast<Format>(i), "its name"};
  if (file.find("twemproxy") != std::string_view::npos)
    return Guess{Format::nutcracker, "its name"};
  return by_content(text);
}

}  // namespace clockwise::importer
