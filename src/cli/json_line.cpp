#include "cli/json_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace clockwise::cli {
namespace {

std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t digits) {
  std::uint32_t number = 0;
  if (text.size() < digits) return std::nullopt;
  const char* const end = text.data() + digits;
  if (std::from_chars(text.data(), end, number, 16).ptr != end) return std::nullopt;
  return number;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto octet = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    octet(code);
  } else if (code < 0x800) {
    octet(0xC0 | code >> 6);
    octet(0x80 | (code & 0x3F));
  } else if (code < 0x1'0000) {
    octet(0xE0 | code >> 12);
    octet(0x80 | (code >> 6 & 0x3F));
    octet(0x80 | (code & 0x3F));
  } else {
    octet(0xF0 | code >> 18);
    octet(0x80 | (code >> 12 & 0x3F));
    octet(0x80 | (code >> 6 & 0x3F));
    octet(0x80 | (code & 0x3F));
  }
}

// `text` begins behind "\u"; returns how much of it was read, 0: not a code.
std::size_t append_code(std::string_view text, std::string& out) {
  const auto code = hexadecimal(text, 4);
  if (!code) return 0;
  if ((*code & 0xFC00) == 0xD800 && text.substr(4, 2) == "\\u")
    if (const auto low = hexadecimal(text.substr(6), 4); low && (*low & 0xFC00) == 0xDC00) {
      append_utf8(0x1'0000 + ((*code & 0x3FF) << 10) + (*low & 0x3FF), out);
      return 10;
    }
  append_utf8(*code, out);
  return 4;
}

// `text` begins behind the backslash; returns how much of it was read.
std::size_t append_escape(std::string_view text, std::string& out) {
  constexpr std::string_view kShort = "bfnrt", kMeans = "\b\f\n\r\t";
  if (text[0] == 'u')
    if (const std::size_t read = append_code(text.substr(1), out); read > 0) return read + 1;
  if (text[0] == 'x')
    if (const auto octet = hexadecimal(text.substr(1), 2)) {
      out += static_cast<char>(*octet);
      return 3;
    }
  const std::size_t known = kShort.find(text[0]);
  out += known == std::string_view::npos ? text[0] : kMeans[known];
  return 1;
}

}  // namespace

JsonLine::JsonLine(std::string_view text) : text_(text) {
  skip_blanks();
  if (!take('{')) text_ = {};
}

std::optional<JsonLine::Member> JsonLine::next() {
  skip_blanks();
  if (take('}')) {
    skip_blanks();
    complete_ = text_.empty();
    return std::nullopt;
  }
  if (!first_ && !take(',')) return std::nullopt;
  first_ = false;
  skip_blanks();
  const auto name = string();
  skip_blanks();
  if (!name || !take(':')) return std::nullopt;
  skip_blanks();
  if (text_.empty()) return std::nullopt;
  using Kind = Member::Kind;
  const char begin = text_.front();
  const auto value = begin == '"'                   ? string()
                     : begin == '{' || begin == '[' ? nested()
                                                    : std::optional(scalar());
  if (!value) return std::nullopt;
  return Member{*name, *value,
                begin == '"'   ? Kind::string
                : begin == '{' ? Kind::object
                               : Kind::other};
}

void JsonLine::skip_blanks() noexcept {
  while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t' || text_.front() == '\r'))
    text_.remove_prefix(1);
}

bool JsonLine::take(char wanted) noexcept {
  if (text_.empty() || text_.front() != wanted) return false;
  text_.remove_prefix(1);
  return true;
}

std::optional<std::string_view> JsonLine::string() noexcept {
  if (!take('"')) return std::nullopt;
  std::size_t at = 0;
  for (;;) {
    const std::size_t quote = text_.find('"', at);
    if (quote == std::string_view::npos) return std::nullopt;
    std::size_t backslashes = 0;
    while (backslashes < quote && text_[quote - backslashes - 1] == '\\') ++backslashes;
    at = quote + 1;
    if (backslashes % 2 != 0) continue;
    const std::string_view inside = text_.substr(0, quote);
    text_.remove_prefix(at);
    return inside;
  }
}

// An object or an array, braces within strings left alone.
std::optional<std::string_view> JsonLine::nested() noexcept {
  const std::string_view whole = text_;
  std::size_t depth = 0;
  while (!text_.empty()) {
    const char mark = text_.front();
    if (mark == '"') {
      if (!string()) return std::nullopt;
      continue;
    }
    text_.remove_prefix(1);
    if (mark == '{' || mark == '[') ++depth;
    if (mark == '}' || mark == ']') --depth;
    if (depth == 0) return whole.substr(0, whole.size() - text_.size());
  }
  return std::nullopt;
}

std::string_view JsonLine::scalar() noexcept {
  std::size_t end = 0;
  while (end < text_.size() && text_[end] != ',' && text_[end] != '}' && text_[end] != ' ') ++end;
  const std::string_view value = text_.substr(0, end);
  text_.remove_prefix(end);
  return value;
}

std::string_view unescaped(std::string_view text, std::string& scratch) {
  std::size_t backslash = text.find('\\');
  if (backslash == std::string_view::npos) return text;
  scratch.clear();
  while (backslash < text.size()) {
    scratch.append(text.substr(0, backslash));
    text.remove_prefix(backslash + 1);
    if (text.empty()) break;
    text.remove_prefix(append_escape(text, scratch));
    backslash = std::min(text.find('\\'), text.size());
  }
  scratch.append(text);
  return scratch;
}

}  // namespace clockwise::cli
