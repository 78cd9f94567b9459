// The members of a JSON object on one line, without building a document: for logs.
//
// Looks no closer than it must: a line that is no JSON is noticed only where the scan trips over
// it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clockwise::cli {

class JsonLine {
 public:
  struct Member {
    std::string_view name;   // as it is written
    std::string_view value;  // of a string what stands between the quotes, as it is written
    enum class Kind { string, object, other } kind;
  };

  // `text` begins with the brace of the object; blanks before it are skipped.
  explicit JsonLine(std::string_view text);

  // The next member, nothing after the last one. A nested object is handed out whole.
  [[nodiscard]] std::optional<Member> next();

  // Did the object end as it should? Asked after next() has given nothing.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  void skip_blanks() noexcept;
  [[nodiscard]] bool take(char wanted) noexcept;
  [[nodiscard]] std::optional<std::string_view> string() noexcept;
  [[nodiscard]] std::optional<std::string_view> nested() noexcept;
  [[nodiscard]] std::string_view scalar() noexcept;

  std::string_view text_;
  bool first_ = true;
  bool complete_ = false;
};

// The text of a string: escapes undone. Beside those of JSON \xHH, which nginx writes unless told
// otherwise. `text` itself where it has none, else a view into `scratch`.
[[nodiscard]] std::string_view unescaped(std::string_view text, std::string& scratch);

}  // namespace clockwise::cli
