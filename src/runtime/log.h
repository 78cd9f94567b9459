// The log of the process: one line per event on stderr, `TIME LEVEL TEXT`.
//
// For start, reload and faults, never for requests (that is the access log). Any thread. No call
// waits for stderr: a thread of its own writes, and where whoever reads stderr has stopped, the
// oldest of the lines that wait are lost, which a line says later. Only log.cpp knows the library
// behind it.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace clockwise::runtime::log {

enum class Level { error, warn, info, debug };

[[nodiscard]] std::optional<Level> level_of(std::string_view name) noexcept;

// Lines below `level` are dropped from now on. The default is `info`.
void set_level(Level level);

// Control characters in `text` are escaped: a file name or a message of a peer stays one line.
void write(Level level, std::string_view text);

// Waits until what was logged so far is written, at most `patience`; whether it is. For the end of
// the process.
bool flush(std::chrono::milliseconds patience);

template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace clockwise::runtime::log
