#include "config/yaml_text.h"

#include <algorithm>

namespace clockwise::config::yaml_text {
namespace {

bool is_quote(char c) noexcept { return c == '"' || c == '\''; }
bool is_property(char c) noexcept { return c == '&' || c == '!'; }

std::size_t line_start(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // 0 where there is none
}

}  // namespace

std::size_t behind_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    const bool doubled = quote == '\'' && text.substr(at, 2) == "''";
    const bool escape = quote == '"' && text[at] == '\\';
    if (doubled || escape)
      ++at;
    else if (text[at] == quote)
      return at + 1;
  }
  return kNone;
}

std::size_t skip_properties(std::string_view text, std::size_t at) {
  while (at < text.size() && is_property(text[at])) {
    at = std::min(text.find_first_of(" \t\r\n,]}", at), text.size());
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  }
  return at;
}

bool is_null_word(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(std::min(at, text.size()), 4);
  return rest.starts_with('~') || rest == "null" || rest == "Null" || rest == "NULL";
}

std::size_t dash_between(std::string_view text, std::size_t from, std::size_t to) {
  for (std::size_t end = to; end > from;) {
    const std::size_t start = std::max(line_start(text, end), from);
    const std::size_t word = text.find_first_not_of(" \t", start);
    if (word < end && text[word] == '-') return word;
    if (start == from) break;
    end = start - 1;
  }
  return to;
}

std::size_t next_quote(std::string_view text, std::size_t from) {
  if (from < text.size() && is_quote(text[from])) {
    const std::size_t behind = behind_quoted(text, from);
    if (behind == kNone) return from;
    from = behind;
  }
  return text.find_first_of("\"'", from);
}

std::size_t tab_in_indentation(std::string_view text, std::size_t at) {
  const std::size_t first = text.find_first_not_of(' ', line_start(text, at));
  return first < text.size() && text[first] == '\t' ? first : kNone;
}

}  // namespace clockwise::config::yaml_text
