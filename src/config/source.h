// The text of one configuration file, ready for the YAML parser and for messages that quote it.
//
// decode() is the wall against bytes that a YAML library treats kindly: what is not clean text is
// refused before it is parsed. Positions are 1-based and count characters, not bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace clockwise::config {

// A place in a file; line 0: the file as a whole.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Source {
 public:
  // Takes UTF-8 with or without a byte order mark, and UTF-16 with one. Refuses invalid UTF-8, NUL
  // and other control bytes, and a lone carriage return; the problem carries the place.
  [[nodiscard]] static std::variant<Source, Problem> decode(std::string name, std::string bytes);

  Source(Source&&) = default;
  Source& operator=(Source&&) = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }  // UTF-8, no mark

  // The rest of the text from a place on; empty beyond the end.
  [[nodiscard]] std::string_view from(Place place) const noexcept;
  // The place of an offset into text().
  [[nodiscard]] Place place_of(std::size_t offset) const noexcept;
  // The offset of a byte in a line, both counted from 0, as the YAML library does.
  [[nodiscard]] std::size_t offset_of_byte(std::size_t line, std::size_t column) const noexcept;
  // The last place of the text.
  [[nodiscard]] Place end() const noexcept { return place_of(text_.size()); }

  // The problem at a place, with its line quoted and marked.
  [[nodiscard]] Problem problem(Place place, std::string message) const;

 private:
  Source(std::string name, std::string text);

  [[nodiscard]] std::size_t line_end(std::uint32_t number) const noexcept;
  [[nodiscard]] std::size_t offset_of(Place place) const noexcept;
  [[nodiscard]] std::size_t characters_before(std::size_t offset) const noexcept;
  [[nodiscard]] std::string excerpt(Place place) const;

  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  // Characters before every kStride bytes: a list on one long line must not cost quadratic time.
  std::vector<std::size_t> characters_;
};

}  // namespace clockwise::config
