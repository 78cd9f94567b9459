#include "config/yaml_depth.h"

#include <algorithm>
#include <vector>

#include "config/yaml_text.h"

namespace clockwise::config {
namespace {

using yaml_text::kNone;

constexpr std::string_view kBracketsAndCommas = "[]{},";
constexpr std::size_t kLongestKey = 1024;  // more, and the colon behind it is not its own

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
bool is_break(char c) noexcept { return c == '\n' || c == '\r'; }
bool is_one_of(char c, std::string_view set) noexcept { return set.find(c) != kNone; }

class Walk {
 public:
  Walk(std::string_view text, const BracketLimits& limits) : text_(text), limits_(limits) {}

  std::optional<BracketBeyond> run() {
    for (skip_space(); at_ < text_.size(); skip_space()) {
      if (!in_flow()) leave_blocks();
      const bool opens = is_one_of(text_[at_], "[{");
      const bool separates = in_flow() && text_[at_] == ',';
      if (opens && blocks_.size() + brackets_ >= limits_.levels) return BracketBeyond{at_, false};
      if (separates && commas_ >= limits_.commas) return BracketBeyond{at_, true};
      pass_token();
    }
    return std::nullopt;
  }

 private:
  struct Block {
    std::size_t column;
    bool list;
  };

  [[nodiscard]] bool in_flow() const noexcept { return brackets_ > 0; }
  [[nodiscard]] std::size_t column() const noexcept { return at_ - line_; }
  // The first column that is inside of the innermost block.
  [[nodiscard]] std::size_t inside() const {
    return blocks_.empty() ? 0 : blocks_.back().column + 1;
  }
  [[nodiscard]] bool blank_or_end(std::size_t at) const {
    return at >= text_.size() || is_blank(text_[at]) || is_break(text_[at]);
  }
  [[nodiscard]] bool at_document_mark() const {
    const std::string_view mark = text_.substr(at_, 3);
    return column() == 0 && (mark == "---" || mark == "...") && blank_or_end(at_ + 3);
  }
  [[nodiscard]] bool at_list_item() const { return text_[at_] == '-' && blank_or_end(at_ + 1); }

  [[nodiscard]] bool at_value() const {
    return text_[at_] == ':' &&
           (blank_or_end(at_ + 1) || (in_flow() && is_one_of(text_[at_ + 1], ",]}")));
  }
  [[nodiscard]] bool at_indicator() const {
    const char c = text_[at_];
    if (in_flow() && (c == '?' || (c == ':' && behind_json_))) return true;
    return at_value() || (is_one_of(c, "-?") && blank_or_end(at_ + 1));
  }

  void pass_break() {
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    line_ = at_;
  }
  void pass_line() { at_ = std::min(text_.find_first_of("\r\n", at_), text_.size()); }
  void pass_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  // To the next token, over comments.
  void skip_space() {
    while (true) {
      pass_blanks();
      if (at_ < text_.size() && text_[at_] == '#') pass_line();
      if (at_ == text_.size() || !is_break(text_[at_])) return;
      pass_break();
    }
  }

  void leave_blocks() {
    const auto ends = [this](const Block& block) {
      return block.column > column() || (block.column == column() && block.list && !at_list_item());
    };
    while (!blocks_.empty() && ends(blocks_.back())) blocks_.pop_back();
    if (key_ < line_) key_ = kNone;  // a key stands on one line
  }

  void enter_block(std::size_t column, bool list) {
    const bool deeper = blocks_.empty() || column > blocks_.back().column ||
                        (column == blocks_.back().column && list && !blocks_.back().list);
    if (deeper && blocks_.size() < limits_.levels) blocks_.push_back({column, list});
  }

  void pass_token() {
    const char c = text_[at_];
    const bool indicator = at_indicator();
    behind_json_ = is_one_of(c, "]}\"'");
    if (at_document_mark()) return pass_document_mark();
    if (column() == 0 && c == '%') return pass_line();
    if (indicator) return pass_indicator();
    if (is_one_of(c, "]},")) return pass_end();
    if (!in_flow() && is_one_of(c, "|>")) return pass_block_scalar();
    if (!in_flow() && key_ == kNone) key_ = at_;
    if (is_one_of(c, "[{")) {
      ++brackets_;
      ++at_;
    } else if (is_one_of(c, "&*")) {
      pass_name();
    } else if (c == '!') {
      pass_tag();
    } else if (is_one_of(c, "\"'")) {
      pass_quoted();
    } else {
      pass_plain();
    }
  }

  void pass_document_mark() {
    blocks_.clear();
    key_ = kNone;
    at_ += 3;
  }

  void pass_indicator() {
    const bool value = text_[at_] == ':';
    const bool has_key = value && key_ != kNone && at_ - key_ <= kLongestKey;
    if (!in_flow()) enter_block((has_key ? key_ : at_) - line_, text_[at_] == '-');
    if (!in_flow()) key_ = kNone;
    ++at_;
  }

  void pass_end() {
    if (in_flow() && text_[at_] == ',') ++commas_;
    if (in_flow() && text_[at_] != ',' && --brackets_ == 0) commas_ = 0;
    ++at_;
  }

  void pass_name() {
    ++at_;
    while (!blank_or_end(at_) && !is_one_of(text_[at_], kBracketsAndCommas)) ++at_;
  }

  void pass_tag() {
    static constexpr std::string_view kMarks = "#;/?:@&=+$_.~*'()-!%";
    const auto in_tag = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             is_one_of(c, kMarks);
    };
    const bool verbatim = text_.substr(at_, 2) == "!<";
    if (verbatim) at_ += 2;
    while (at_ < text_.size() && in_tag(text_[at_])) ++at_;
    if (verbatim && at_ < text_.size() && text_[at_] == '>') ++at_;
  }

  void pass_quoted() {
    const std::size_t end = std::min(yaml_text::behind_quoted(text_, at_), text_.size());
    const std::size_t last_break = text_.substr(at_, end - at_).find_last_of("\r\n");
    if (last_break != kNone) line_ = at_ + last_break + 1;
    at_ = end;
  }

  [[nodiscard]] bool plain_ends() const {
    const char c = text_[at_];
    if (at_value()) return true;
    const std::size_t behind = at_ + (text_.substr(at_, 2) == "\r\n" ? 2 : 1);
    if ((is_blank(c) || is_break(c)) && behind < text_.size() && text_[behind] == '#') return true;
    if (at_document_mark()) return true;
    return in_flow() && is_one_of(c, "?,[]{}");
  }

  // At the first character always a step: what cannot start a plain text is refused anyway.
  void pass_plain() {
    const std::size_t indent = in_flow() ? 0 : inside();
    for (++at_; at_ < text_.size() && !plain_ends();) {
      if (!is_break(text_[at_])) {
        ++at_;
        continue;
      }
      pass_break();
      while (at_ < text_.size() && is_blank(text_[at_]) && !plain_ends()) ++at_;
      if (at_ < text_.size() && !is_break(text_[at_]) && column() < indent) return;
    }
  }

  void pass_block_scalar() {
    ++at_;
    std::size_t indent = blocks_.empty() ? 0 : blocks_.back().column;
    bool told = false;
    for (int i = 0; i < 2 && at_ < text_.size() && is_one_of(text_[at_], "+-123456789"); ++i, ++at_)
      if (text_[at_] > '0') {
        indent += static_cast<std::size_t>(text_[at_] - '0');
        told = true;
      }
    if (!told) ++indent;
    pass_blanks();
    if (at_ < text_.size() && text_[at_] == '#') pass_line();
    bool found = told;  // the indentation
    while (at_ < text_.size() && is_break(text_[at_])) {
      pass_break();
      while (at_ < text_.size() && text_[at_] == ' ' && (!found || column() < indent)) ++at_;
      if (!found) indent = std::max(indent, column());
      if (at_ == text_.size()) return;
      if (is_break(text_[at_])) continue;
      if (column() < indent || at_document_mark()) return;
      found = true;
      pass_line();
    }
  }

  const std::string_view text_;
  const BracketLimits limits_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;  // where the line of at_ starts
  std::size_t brackets_ = 0;
  std::size_t commas_ = 0;  // in the outermost bracket
  std::vector<Block> blocks_;
  bool behind_json_ = false;  // a quote or bracket: in a bracket, a colon needs no blank then
  std::size_t key_ = kNone;   // where that starts which a colon would make a key
};

}  // namespace

std::optional<BracketBeyond> bracket_beyond(std::string_view text, const BracketLimits& limits) {
  return Walk(text, limits).run();
}

}  // namespace clockwise::config
