#include "cache/structured.h"

#include <algorithm>

#include "http/octets.h"

namespace clockwise::cache::structured {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_alpha(char c) { return is_lower(http::lower(c)); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_base64(char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '='; }

// Each function reads one thing of the grammar and is false where it does not stand.
class Parser {
 public:
  explicit Parser(std::string_view text) : left_(text) {}

  bool dictionary(std::vector<Entry>& entries) {
    skip(' ');
    while (!left_.empty()) {
      Entry entry;
      if (!key(entry.key) || !member(entry)) return false;
      const auto same = std::ranges::find(entries, entry.key, &Entry::key);
      if (same != entries.end())
        *same = std::move(entry);
      else
        entries.push_back(std::move(entry));
      skip_blanks();
      if (left_.empty()) return true;
      if (!take(',')) return false;
      skip_blanks();
      if (left_.empty()) return false;  // a comma at the end
    }
    return true;
  }

 private:
  bool member(Entry& entry) {
    if (!take('=')) return parameters();  // `key` alone is true
    if (!left_.starts_with('(')) return item(entry) && parameters();
    entry.type = Type::list;
    return inner_list() && parameters();
  }
  bool inner_list() {
    take('(');
    for (;;) {
      skip(' ');
      if (take(')')) return true;
      Entry ignored;
      if (!item(ignored) || !parameters()) return false;
      if (!left_.starts_with(' ') && !left_.starts_with(')')) return false;
    }
  }
  bool parameters() {
    while (take(';')) {
      skip(' ');
      std::string name;
      Entry ignored;
      if (!key(name)) return false;
      if (take('=') && !item(ignored)) return false;
    }
    return true;
  }
  bool key(std::string& out) {
    if (left_.empty() || !(is_lower(left_.front()) || left_.front() == '*')) return false;
    out = http::take_while(left_, [](char c) {
      return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
    });
    return true;
  }
  bool item(Entry& entry) {
    if (left_.empty()) return false;
    const char first = left_.front();
    if (first == '"') return string(entry);
    if (first == ':') return bytes(entry);
    if (first == '?') return boolean(entry);
    if (first == '@') return date(entry);
    if (first == '-' || is_digit(first)) return number(entry);
    if (first == '*' || is_alpha(first)) return token(entry);
    return false;
  }
  bool number(Entry& entry) {
    const bool negative = take('-');
    const std::string_view digits = http::take_while(left_, is_digit);
    if (digits.empty() || digits.size() > 15) return false;
    entry.type = Type::integer;
    entry.integer = 0;
    for (const char digit : digits) entry.integer = entry.integer * 10 + (digit - '0');
    if (negative) entry.integer = -entry.integer;
    if (!take('.')) return true;
    entry.type = Type::decimal;
    const std::string_view fraction = http::take_while(left_, is_digit);
    return digits.size() <= 12 && !fraction.empty() && fraction.size() <= 3;
  }
  bool string(Entry& entry) {
    entry.type = Type::string;
    take('"');
    while (!left_.empty()) {
      const char c = left_.front();
      left_.remove_prefix(1);
      if (c == '"') return true;
      if (c < ' ' || c > '~') return false;
      if (c == '\\' && !take('"') && !take('\\')) return false;
    }
    return false;
  }
  bool token(Entry& entry) {
    entry.type = Type::token;
    (void)http::take_while(
        left_, [](char c) { return http::is(c, http::kToken) || c == ':' || c == '/'; });
    return true;
  }
  bool bytes(Entry& entry) {
    entry.type = Type::bytes;
    take(':');
    (void)http::take_while(left_, is_base64);
    return take(':');
  }
  bool boolean(Entry& entry) {
    entry.type = Type::boolean;
    take('?');
    entry.boolean = left_.starts_with('1');
    return take('0') || take('1');
  }
  bool date(Entry& entry) {
    take('@');
    if (!number(entry) || entry.type != Type::integer) return false;
    entry.type = Type::date;
    return true;
  }

  bool take(char wanted) {
    if (!left_.starts_with(wanted)) return false;
    left_.remove_prefix(1);
    return true;
  }
  void skip(char unwanted) {
    (void)http::take_while(left_, [unwanted](char c) { return c == unwanted; });
  }
  void skip_blanks() {
    (void)http::take_while(left_, [](char c) { return http::is(c, http::kBlank); });
  }

  std::string_view left_;
};

}  // namespace

std::optional<std::vector<Entry>> parse_dictionary(std::span<const std::string_view> lines) {
  std::string text;
  for (const std::string_view line : lines) {
    if (!text.empty()) text += ", ";
    text += line;
  }
  while (text.ends_with(' ')) text.pop_back();
  std::vector<Entry> entries;
  if (!Parser(text).dictionary(entries)) return std::nullopt;
  return entries;
}

}  // namespace clockwise::cache::structured
