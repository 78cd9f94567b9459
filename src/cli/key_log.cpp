#include "cli/key_log.h"

#include <boost/json.hpp>
#include <charconv>

namespace clockwise::cli {
namespace {

namespace json = boost::json;

// "GET /x HTTP/1.1" -> /x; also without the version, as HTTP/0.9 had it.
std::optional<std::string_view> target_of(std::string_view request) {
  const std::size_t method_end = request.find(' ');
  if (method_end == std::string_view::npos || method_end == 0) return std::nullopt;
  std::string_view target = request.substr(method_end + 1);
  if (const std::size_t version = target.rfind(" HTTP/"); version != std::string_view::npos)
    target = target.substr(0, version);
  if (target.empty()) return std::nullopt;
  return target;
}

// The text between the quotes that follow the time: … [date] "GET /x HTTP/1.1" 200 …
std::optional<std::string_view> quoted_request(std::string_view line) {
  const std::size_t before = line.find("] \"");
  if (before == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(before + 3);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') return rest.substr(0, i);
    if (rest[i] == '\\') ++i;
  }
  return std::nullopt;
}

// Logs write \xHH, \" and \\ for what would end the field.
std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    unsigned octet = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == 'x' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, octet, 16).ptr == digits + 2) {
      out += static_cast<char>(octet);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> key_of_combined(std::string_view line) {
  const auto request = quoted_request(line);
  const auto target = request ? target_of(*request) : std::nullopt;
  if (!target) return std::nullopt;
  return unescaped(*target);
}

std::optional<std::string> key_of_json(std::string_view line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object()) return std::nullopt;
  for (const char* name : {"target", "request_uri", "request", "uri", "url", "path"}) {
    const json::value* field = value.get_object().if_contains(name);
    if (field == nullptr || !field->is_string()) continue;
    const std::string_view text(field->get_string());
    const auto key = std::string_view(name) == "request" ? target_of(text) : std::optional(text);
    if (key && !key->empty()) return std::string(*key);
  }
  return std::nullopt;
}

}  // namespace

KeyFormat detect_key_format(std::string_view line) {
  if (line.starts_with('{') && key_of_json(line)) return KeyFormat::json;
  // A first request that could not be read ("-") is still a line of a log.
  return quoted_request(line) ? KeyFormat::combined : KeyFormat::plain;
}

std::optional<std::string> key_of_line(std::string_view line, KeyFormat format) {
  if (line.empty()) return std::nullopt;
  switch (format) {
    case KeyFormat::combined:
      return key_of_combined(line);
    case KeyFormat::json:
      return key_of_json(line);
    case KeyFormat::plain:
      break;
  }
  return std::string(line);
}

}  // namespace clockwise::cli
