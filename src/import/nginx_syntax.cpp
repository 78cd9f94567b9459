#include "import/nginx_syntax.h"

#include <fmt/format.h>

namespace clockwise::importer {
namespace {

constexpr std::size_t kMaxDepth = 64;

enum class TokenKind { word, semicolon, open, close, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t at = 0;
  std::string text = {};
};

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Skips Lua from `at`, the letter behind a `{`, up to the `}` that closes it: braces in strings and
// comments do not count. Returns the place of that `}`, or npos.
class LuaSkipper {
 public:
  LuaSkipper(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t closing_brace() {
    for (int depth = 1; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '"' || c == '\'')
        skip_string(c);
      else if (text_.substr(at_, 2) == "--")
        skip_comment();
      else if (c == '[' && skip_long())
        continue;
      else if (c == '}' && --depth == 0)
        return at_;
      else
        depth += text_[at_++] == '{' ? 1 : 0;
    }
    return std::string_view::npos;
  }

 private:
  // An end of the line closes a string too: Lua would refuse it, and no more of the file is lost.
  void skip_string(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }

  void skip_comment() {
    at_ += 2;
    if (!skip_long()) at_ = std::min(text_.find('\n', at_), text_.size());
  }

  // `[[ … ]]`, `[==[ … ]==]`; false, and nothing skipped, where none begins.
  bool skip_long() {
    const std::size_t level = std::min(text_.find_first_not_of('=', at_ + 1), text_.size());
    if (at_ >= text_.size() || text_[at_] != '[' || level == text_.size() || text_[level] != '[')
      return false;
    const std::string end = "]" + std::string(level - at_ - 1, '=') + "]";
    const std::size_t found = text_.find(end, level + 1);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_;
};

// What an escape in a word stands for; of all others the backslash is part of the word.
std::string unescaped(std::string_view raw) {
  std::string out;
  for (std::size_t at = 0; at < raw.size(); ++at) {
    const char next = raw[at] == '\\' && at + 1 < raw.size() ? raw[at + 1] : '\0';
    constexpr std::string_view kEscapes = "\"'\\trn";
    constexpr std::string_view kMeanings = "\"'\\\t\r\n";
    const std::size_t escape = next == '\0' ? std::string_view::npos : kEscapes.find(next);
    out += escape == std::string_view::npos ? raw[at] : kMeanings[escape];
    if (escape != std::string_view::npos) ++at;
  }
  return out;
}

class Tokenizer {
 public:
  explicit Tokenizer(const config::Source& source) : source_(source), text_(source.text()) {}

  std::variant<Token, config::Problem> next() {
    skip_blanks();
    const std::size_t start = at_;
    if (at_ == text_.size()) return Token{TokenKind::end, start};
    switch (text_[at_]) {
      case ';':
        return symbol(TokenKind::semicolon);
      case '{':
        return symbol(TokenKind::open);
      case '}':
        return symbol(TokenKind::close);
      case '"':
      case '\'':
        return quoted_word(text_[at_]);
      default:
        return plain_word();
    }
  }

  // Goes on behind the } of a block of Lua whose { was the last token; false when there is none.
  [[nodiscard]] bool skip_lua() {
    const std::size_t end = LuaSkipper(text_, at_).closing_brace();
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    return end != std::string_view::npos;
  }

  [[nodiscard]] config::Problem problem(std::size_t at, std::string message) const {
    return source_.problem(source_.place_of(at), std::move(message));
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (is_blank(text_[at_]))
        ++at_;
      else
        return;
    }
  }

  Token symbol(TokenKind kind) { return Token{kind, at_++}; }

  std::variant<Token, config::Problem> quoted_word(char quote) {
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = text_.size();
      return problem(start, "the quote is never closed");
    }
    Token word{TokenKind::word, start, unescaped(text_.substr(start + 1, at_ - start - 1))};
    ++at_;
    const bool ends = at_ == text_.size() || is_blank(text_[at_]) || text_[at_] == ';' ||
                      text_[at_] == '{' || text_[at_] == ')';
    if (!ends) return problem(at_, "behind a closing quote a blank, a ; or a { is wanted");
    return word;
  }

  Token plain_word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != ';' && text_[at_] != '{') {
      const bool variable = text_.substr(at_, 2) == "${";
      at_ = std::min(at_ + (variable || text_[at_] == '\\' ? 2 : 1), text_.size());
    }
    return Token{TokenKind::word, start, unescaped(text_.substr(start, at_ - start))};
  }

  const config::Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(const config::Source& source) : source_(source), tokens_(source) {}

  std::variant<std::vector<Directive>, config::Problem> parse() {
    for (;;) {
      auto next = tokens_.next();
      if (auto* problem = std::get_if<config::Problem>(&next)) return std::move(*problem);
      const Token& token = std::get<Token>(next);
      if (auto problem = take(token)) return *std::move(problem);
      if (token.kind == TokenKind::end) return std::move(top_);
    }
  }

 private:
  std::optional<config::Problem> take(const Token& token) {
    switch (token.kind) {
      case TokenKind::word:
        words_.push_back({token.text, source_.place_of(token.at)});
        return std::nullopt;
      case TokenKind::semicolon:
        if (words_.empty()) return tokens_.problem(token.at, "a directive is wanted before the ;");
        append(false);
        return std::nullopt;
      case TokenKind::open:
        return open(token);
      case TokenKind::close:
        return close(token);
      case TokenKind::end:
        return end();
    }
    return std::nullopt;
  }

  std::vector<Directive>& level() { return open_.empty() ? top_ : open_.back()->children; }

  void append(bool block) {
    level().push_back(
        {.source = &source_, .words = std::move(words_), .block = block, .children = {}});
    words_.clear();
  }

  std::optional<config::Problem> open(const Token& token) {
    if (words_.empty()) return tokens_.problem(token.at, "a directive is wanted before the {");
    if (open_.size() == kMaxDepth)
      return tokens_.problem(token.at, fmt::format("more than {} blocks deep", kMaxDepth));
    const bool lua = words_.front().text.ends_with("_by_lua_block");
    append(true);
    Directive& block = level().back();
    if (!lua)
      open_.push_back(&block);
    else if (!tokens_.skip_lua())
      return source_.problem(block.place(), "the block is never closed with a }");
    return std::nullopt;
  }

  std::optional<config::Problem> close(const Token& token) {
    if (!words_.empty())
      return tokens_.problem(token.at,
                             fmt::format("a ; is missing behind \"{}\"", words_.back().text));
    if (open_.empty()) return tokens_.problem(token.at, "the } closes nothing");
    open_.pop_back();
    return std::nullopt;
  }

  std::optional<config::Problem> end() {
    if (!words_.empty())
      return source_.problem(words_.front().place, "the file ends before the ; of this directive");
    if (!open_.empty())
      return source_.problem(open_.back()->place(), "the block is never closed with a }");
    return std::nullopt;
  }

  const config::Source& source_;
  Tokenizer tokens_;
  std::vector<Directive> top_;
  // Blocks that are open. Nothing is appended to a level while one of its blocks is open, so the
  // pointers stay good.
  std::vector<Directive*> open_;
  std::vector<Word> words_;
};

}  // namespace

std::variant<std::vector<Directive>, config::Problem> parse_nginx(const config::Source& source) {
  return Parser(source).parse();
}

}  // namespace clockwise::importer
