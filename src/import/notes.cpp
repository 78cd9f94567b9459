#include "import/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "config/utf8.h"

namespace clockwise::importer {
namespace {

constexpr std::size_t kLinesShown = 6;

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const config::utf8::Decoded next = config::utf8::decode(text);
    if (next.valid && config::utf8::is_printable(next.code))
      out += text.substr(0, next.length);
    else
      out += '?';
    text.remove_prefix(std::min(next.length, text.size()));
  }
  return out;
}

std::string Note::text() const {
  if (also.empty()) return fmt::format("{}:{}: {}", file, line, message);
  const std::vector<std::uint32_t> shown(
      also.begin(), also.begin() + static_cast<std::ptrdiff_t>(std::min(also.size(), kLinesShown)));
  return fmt::format("{}:{}: {} (also on line {}{})", file, line, message, fmt::join(shown, ", "),
                     also.size() > kLinesShown ? ", …" : "");
}

void Notes::add(std::string_view file, std::uint32_t line, std::string message) {
  const auto [known, fresh] = seen_.try_emplace({std::string(file), message}, notes_.size());
  if (!fresh) {
    Note& note = notes_[known->second];
    if (note.line != line && (note.also.empty() || note.also.back() != line))
      note.also.push_back(line);
    return;
  }
  files_.try_emplace(std::string(file), files_.size());
  notes_.push_back(
      {.file = std::string(file), .line = line, .message = printable(message), .also = {}});
}

std::vector<Note> Notes::take() {
  std::sort(notes_.begin(), notes_.end(), [&](const Note& a, const Note& b) {
    return std::tie(files_.at(a.file), a.line, a.message) <
           std::tie(files_.at(b.file), b.line, b.message);
  });
  seen_.clear();
  files_.clear();
  return std::exchange(notes_, {});
}

}  // namespace clockwise::importer
