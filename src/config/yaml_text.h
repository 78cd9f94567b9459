// What the text around an event of the YAML library tells, where the event itself does not.
//
// Pure; `at` is an offset into `text`. None of this decides what the YAML means: it finds the place
// to point at, and the one fault that the library overlooks (a quote that is never closed).
#pragma once

#include <cstddef>
#include <string_view>

namespace clockwise::config::yaml_text {

inline constexpr std::size_t kNone = std::string_view::npos;

// The offset behind the closing quote of the quoted text at `at`; kNone when the text ends first.
[[nodiscard]] std::size_t behind_quoted(std::string_view text, std::size_t at);

// The value behind the anchors and tags at `at`.
[[nodiscard]] std::size_t skip_properties(std::string_view text, std::size_t at);

// True when a null is written here, as a word; the library takes the next token otherwise.
[[nodiscard]] bool is_null_word(std::string_view text, std::size_t at);

// The dash of a list item without a value: the last one that starts a line from `from` to `to`;
// `to` when there is none.
[[nodiscard]] std::size_t dash_between(std::string_view text, std::size_t from, std::size_t to);

// The first quote at or behind `from` that does not belong to a quoted text at `from`.
[[nodiscard]] std::size_t next_quote(std::string_view text, std::size_t from);

// The tab in the indentation of the line that holds `at`, or kNone.
[[nodiscard]] std::size_t tab_in_indentation(std::string_view text, std::size_t at);

}  // namespace clockwise::config::yaml_text
