#include "config/substitute.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/values.h"

namespace clockwise::config {
namespace {

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), allowed);
}

// `NAME` or `NAME:-default`, the inside of the braces.
Result<std::string> value_of(std::string_view inside, const Environment& environment) {
  const std::size_t separator = inside.find(":-");
  const std::string_view name = inside.substr(0, separator);
  if (!is_variable_name(name))
    return fail("a substitution is ${NAME} or ${NAME:-default}; write $${ for a plain ${");
  std::optional<std::string> value = environment(name);
  if (separator == std::string_view::npos) {
    if (value) return valid(*std::move(value));
    return fail(fmt::format(
        "the environment variable {0} is not set; ${{{0}:-default}} gives a default", name));
  }
  if (value && !value->empty()) return valid(*std::move(value));
  return valid(std::string(inside.substr(separator + 2)));
}

}  // namespace

Result<Substituted> substitute(std::string_view text, const Environment& environment) {
  Substituted out;
  for (;;) {
    const std::size_t dollar = text.find("${");
    if (dollar == std::string_view::npos) break;
    const bool escaped = dollar > 0 && text[dollar - 1] == '$';
    out.text += text.substr(0, dollar);
    text.remove_prefix(dollar + 2);
    if (escaped) {
      out.text += '{';
      continue;
    }
    const std::size_t brace = text.find('}');
    if (brace == std::string_view::npos)
      return fail("${ without a closing brace; write $${ for a plain ${");
    const Result<std::string> value = value_of(text.substr(0, brace), environment);
    if (!value) return value.error();
    out.text += *value;
    out.changed = true;
    text.remove_prefix(brace + 1);
  }
  out.text += text;
  return out;
}

}  // namespace clockwise::config
