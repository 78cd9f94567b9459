#include "config/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/utf8.h"

namespace clockwise::config {
namespace {

constexpr std::uint32_t kQuoted = 100;  // characters of a line, so that a message stays readable
constexpr std::size_t kStride = 256;

struct Fault {
  std::size_t offset;
  std::string message;
};

std::optional<Fault> control_fault(std::string_view text, std::size_t at, char32_t code) {
  if (code == U'\0')
    return Fault{at, "a NUL byte; the file is damaged, or UTF-16 without a byte order mark"};
  if (code == U'\r' && text.substr(at, 2) != "\r\n")
    return Fault{at, "a carriage return without a line feed"};
  const bool control = (code < 0x20 && code != U'\t' && code != U'\n' && code != U'\r') ||
                       (code >= 0x7f && code <= 0x9f);
  if (control)
    return Fault{at, fmt::format("control character U+{:04X}", static_cast<std::uint32_t>(code))};
  return std::nullopt;
}

std::optional<Fault> first_fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded next = utf8::decode(text.substr(at));
    if (!next.valid)
      return Fault{at, fmt::format("byte 0x{:02x} is not valid UTF-8",
                                   static_cast<unsigned char>(text[at]))};
    if (auto fault = control_fault(text, at, next.code)) return fault;
    at += next.length;
  }
  return std::nullopt;
}

// What a terminal may show: a damaged file must not send it commands.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded next = utf8::decode(text.substr(at));
    const bool shown = next.valid && (next.code == U'\t' || utf8::is_printable(next.code));
    out += shown ? text.substr(at, next.length) : std::string_view("\xef\xbf\xbd");
    at += next.length;
  }
  return out;
}

bool starts_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

std::variant<Source, Problem> Source::decode(std::string name, std::string bytes) {
  Source source(std::move(name), utf8::from_marked(std::move(bytes)));
  if (const auto fault = first_fault(source.text_))
    return source.problem(source.place_of(fault->offset), fault->message);
  return source;
}

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text_.size(); ++at) {
    if (at % kStride == 0) characters_.push_back(characters);
    if (starts_character(text_[at])) ++characters;
    if (text_[at] == '\n') line_starts_.push_back(at + 1);
  }
  characters_.push_back(characters);
}

std::size_t Source::characters_before(std::size_t offset) const noexcept {
  const std::size_t block = offset / kStride;
  const auto first = text_.begin() + static_cast<std::ptrdiff_t>(block * kStride);
  const auto last = text_.begin() + static_cast<std::ptrdiff_t>(offset);
  return characters_[block] +
         static_cast<std::size_t>(std::count_if(first, last, starts_character));
}

// Without the line break.
std::size_t Source::line_end(std::uint32_t number) const noexcept {
  if (number >= line_starts_.size()) return text_.size();
  const std::size_t end = line_starts_[number] - 1;
  return end > line_starts_[number - 1] && text_[end - 1] == '\r' ? end - 1 : end;
}

std::size_t Source::offset_of(Place place) const noexcept {
  if (place.line == 0 || place.line > line_starts_.size()) return text_.size();
  const std::size_t start = line_starts_[place.line - 1];
  const std::size_t wanted = characters_before(start) + place.column - 1;
  const auto block = std::upper_bound(characters_.begin(), characters_.end() - 1, wanted) - 1;
  std::size_t characters = *block;
  std::size_t at = static_cast<std::size_t>(block - characters_.begin()) * kStride;
  for (; at < text_.size(); ++at)
    if (starts_character(text_[at]) && characters++ == wanted) break;
  return std::clamp(at, start, line_end(place.line));
}

std::string_view Source::from(Place place) const noexcept {
  return std::string_view(text_).substr(offset_of(place));
}

Place Source::place_of(std::size_t offset) const noexcept {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t column = characters_before(offset) - characters_before(*(next - 1)) + 1;
  return {static_cast<std::uint32_t>(next - line_starts_.begin()),
          static_cast<std::uint32_t>(column)};
}

std::size_t Source::offset_of_byte(std::size_t line, std::size_t column) const noexcept {
  if (line >= line_starts_.size()) return text_.size();
  return std::min(line_starts_[line] + column, text_.size());
}

// The part of the line around the place, and the mark below it.
std::string Source::excerpt(Place place) const {
  const std::uint32_t left = place.column <= kQuoted ? 1 : place.column - kQuoted / 2;
  const std::size_t begin = offset_of({place.line, left});
  const std::string_view line = std::string_view(text_).substr(begin, line_end(place.line) - begin);

  std::string mark;
  for (const char byte : std::string_view(text_).substr(begin, offset_of(place) - begin))
    if (starts_character(byte)) mark += byte == '\t' ? '\t' : ' ';
  const bool cut = left > 1;
  return fmt::format("  {}{}\n  {}{}^", cut ? "… " : "", printable(utf8::slice(line, 0, kQuoted)),
                     cut ? "  " : "", mark);
}

Problem Source::problem(Place place, std::string message) const {
  Problem problem;
  problem.position = {name_, place.line, place.column};
  problem.message = std::move(message);
  if (place.line != 0) problem.source = excerpt(place);
  return problem;
}

std::string Problem::headline() const {
  if (position.line == 0) return fmt::format("{}: {}", position.file, message);
  return fmt::format("{}:{}:{}: {}", position.file, position.line, position.column, message);
}

std::string Problem::text() const {
  return source.empty() ? headline() : headline() + "\n" + source;
}

}  // namespace clockwise::config
