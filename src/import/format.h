// Which program a configuration file belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace clockwise::importer {

enum class Format : std::uint8_t { nginx, nutcracker, haproxy, mcrouter, envoy };

[[nodiscard]] std::string_view to_string(Format format) noexcept;
[[nodiscard]] std::optional<Format> format_named(std::string_view name) noexcept;
[[nodiscard]] std::span<const std::string_view> format_names() noexcept;

struct Guess {
  Format format;
  std::string because;  // "its name", "it has an upstream block"
};

// From the name of the file, else from what stands in it; nothing when neither tells.
[[nodiscard]] std::optional<Guess> guess_format(std::string_view path, std::string_view text);

}  // namespace clockwise::importer
