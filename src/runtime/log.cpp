#include "runtime/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace clockwise::runtime::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = std::make_shared<spdlog::logger>(
        "clockwise", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::error:
      return spdlog::level::err;
    case Level::warn:
      return spdlog::level::warn;
    case Level::info:
      return spdlog::level::info;
    case Level::debug:
      break;
  }
  return spdlog::level::debug;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char octet : text) {
    const auto c = static_cast<unsigned char>(octet);
    if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", c);
    else
      out += octet;
  }
  return out;
}

}  // namespace

std::optional<Level> level_of(std::string_view name) noexcept {
  if (name == "error") return Level::error;
  if (name == "warn") return Level::warn;
  if (name == "info") return Level::info;
  if (name == "debug") return Level::debug;
  return std::nullopt;
}

void set_level(Level level) { logger().set_level(to_spdlog(level)); }

void write(Level level, std::string_view text) { logger().log(to_spdlog(level), one_line(text)); }

}  // namespace clockwise::runtime::log
