#include "import/haproxy_syntax.h"

#include <optional>

namespace clockwise::importer {
namespace {

class LineReader {
 public:
  LineReader(const config::Source& source, std::size_t start, std::size_t end)
      : source_(source), text_(std::string_view(source.text()).substr(0, end)), at_(start) {}

  // The words of the line; nothing when a quote stays open (see problem()).
  std::optional<ConfigLine> read() {
    ConfigLine words;
    while (skip_blanks()) {
      const std::size_t start = at_;
      std::string word;
      if (!read_word(word)) return std::nullopt;
      words.push_back({std::move(word), source_.place_of(start)});
    }
    return words;
  }

  [[nodiscard]] config::Problem problem() const {
    return source_.problem(source_.place_of(quote_), "the quote is not closed on this line");
  }

 private:
  // False at the end of the line, or of what is not a comment.
  bool skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ < text_.size() && text_[at_] != '#';
  }

  static bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

  bool read_word(std::string& word) {
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '#') {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        if (!read_quoted(c, word)) return false;
      } else {
        read_letter(word);
      }
    }
    return true;
  }

  // Between double quotes a backslash escapes, between single ones nothing does.
  bool read_quoted(char quote, std::string& word) {
    quote_ = at_++;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (quote == '"')
        read_letter(word);
      else
        word += text_[at_++];
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  void read_letter(std::string& word) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    word += text_[at_++];
  }

  const config::Source& source_;
  std::string_view text_;
  std::size_t at_;
  std::size_t quote_ = 0;
};

}  // namespace

std::variant<std::vector<ConfigLine>, config::Problem> parse_haproxy(const config::Source& source) {
  std::vector<ConfigLine> lines;
  const std::string_view text = source.text();
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    LineReader reader(source, start, end);
    std::optional<ConfigLine> words = reader.read();
    if (!words) return reader.problem();
    if (!words->empty()) lines.push_back(*std::move(words));
    start = end + 1;
  }
  return lines;
}

}  // namespace clockwise::importer
