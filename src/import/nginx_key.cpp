#include "import/nginx_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "config/values.h"

namespace clockwise::importer {
namespace {

// A variable may be set from others; a circle of them ends here.
constexpr int kMaxDepth = 8;
constexpr std::size_t kLongest = 4096;

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kVariables{
    {{"request_uri", "{uri}"},
     {"uri", "{path:decoded}"},
     {"document_uri", "{path:decoded}"},
     {"args", "{query}"},
     {"query_string", "{query}"},
     {"host", "{host}"},
     {"scheme", "{scheme}"},
     {"request_method", "{method}"},
     {"remote_addr", "{client_ip}"}}};

bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// $arg_x, $cookie_x and $http_x_forwarded_for.
std::optional<std::string> named(std::string_view variable) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPrefixes{
      {{"arg_", "query"}, {"cookie_", "cookie"}, {"http_", "header"}}};
  for (const auto& [prefix, placeholder] : kPrefixes) {
    if (!variable.starts_with(prefix) || variable.size() == prefix.size()) continue;
    std::string name(variable.substr(prefix.size()));
    if (placeholder == "header") std::replace(name.begin(), name.end(), '_', '-');
    return fmt::format("{{{}:{}}}", placeholder, name);
  }
  return std::nullopt;
}

class Translator {
 public:
  explicit Translator(const Variables& variables) : variables_(variables) {}

  Result<void> append(std::string_view text, int depth) {
    while (!text.empty()) {
      if (out_.size() > kLongest) return fail("the key is longer than 4096 characters");
      if (text.front() != '$') {
        if (text.front() == '{' || text.front() == '}')
          return fail("a brace as a letter of the key has no equal in a key template");
        out_ += text.front();
        text.remove_prefix(1);
        continue;
      }
      const std::string_view name = take_name(text);
      if (const auto done = variable(name, depth); !done) return done;
    }
    return {};
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string_view take_name(std::string_view& text) {
    text.remove_prefix(1);
    const bool braced = text.starts_with('{');
    if (braced) text.remove_prefix(1);
    std::size_t length = 0;
    while (length < text.size() && is_name(text[length])) ++length;
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (braced && text.starts_with('}')) text.remove_prefix(1);
    return name;
  }

  Result<void> variable(std::string_view name, int depth) {
    if (depth < kMaxDepth)
      if (const std::optional<std::string> set = variables_(name)) return append(*set, depth + 1);
    for (const auto& [known, placeholder] : kVariables) {
      if (known != name) continue;
      out_ += placeholder;
      return {};
    }
    const std::optional<std::string> found = named(name);
    if (!found) return fail(fmt::format("${} has no equal in a key template", name));
    out_ += *found;
    return {};
  }

  const Variables& variables_;
  std::string out_;
};

}  // namespace

Result<std::string> nginx_key(std::string_view text, const Variables& variables) {
  Translator translator(variables);
  if (const auto done = translator.append(text, 0); !done) return done.error();
  return config::valid(translator.take());
}

}  // namespace clockwise::importer
