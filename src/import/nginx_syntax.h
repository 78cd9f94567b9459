// The syntax of nginx.conf: directives of words, with a `;` or a block behind them.
//
// Quotes, escapes, comments and `${name}` as nginx reads them; what the words mean is decided
// elsewhere. What stands in a block of `*_by_lua_block` is Lua and skipped. Places are exact, so
// that a note or a problem can point at a word.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "import/word.h"

namespace clockwise::importer {

struct Directive {
  const config::Source* source = nullptr;  // the file it stands in
  std::vector<Word> words;                 // never empty: the name, then its parameters
  bool block = false;
  std::vector<Directive> children;

  [[nodiscard]] const std::string& name() const noexcept { return words.front().text; }
  [[nodiscard]] config::Place place() const noexcept { return words.front().place; }
  // The parameter of that number, counted from 1; empty when there are fewer.
  [[nodiscard]] std::string_view parameter(std::size_t number) const noexcept {
    return number < words.size() ? std::string_view(words[number].text) : std::string_view();
  }
};

// At most 64 blocks inside each other. The directives point at `source`, which must outlive them.
[[nodiscard]] std::variant<std::vector<Directive>, config::Problem> parse_nginx(
    const config::Source& source);

}  // namespace clockwise::importer
