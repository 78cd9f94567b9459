#include "import/haproxy_key.h"

#include <fmt/format.h>

#include <algorithm>

namespace clockwise::importer {
namespace {

using Words = std::span<const std::string_view>;

std::string_view word(Words words, std::size_t index) {
  return index < words.size() ? words[index] : std::string_view();
}

bool has(Words words, std::string_view wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

HaproxyKey uri_key(Words words) {
  HaproxyKey key{.placed = true};
  const bool whole = has(words, "whole");
  key.key = whole ? "{uri}" : "{path}";
  key.cut_query = !whole;
  if (has(words, "len") || has(words, "depth"))
    key.moves = "balance uri with len or depth hashes a part that no key template can cut out";
  return key;
}

// The X of `name(X)`; nothing for any other text.
std::string_view argument(std::string_view text, std::string_view name) {
  const bool fits = text.starts_with(name) && text.substr(name.size()).starts_with('(') &&
                    text.ends_with(')') && text.size() > name.size() + 2;
  return fits ? text.substr(name.size() + 1, text.size() - name.size() - 2) : std::string_view();
}

HaproxyKey named_key(std::string_view placeholder, std::string_view name) {
  HaproxyKey key{.placed = true};
  key.key = fmt::format("{{{}:{}}}", placeholder, name);
  key.note = fmt::format("a request without this {} is spread by its URI here, in turn there",
                         placeholder == "query" ? "parameter" : placeholder);
  return key;
}

HaproxyKey lost_key(std::string_view why) {
  HaproxyKey key{.placed = true};
  key.moves = why;
  return key;
}

// `balance hash EXPRESSION`
HaproxyKey expression_key(std::string_view text) {
  if (text == "path") return {.placed = true, .key = "{path}", .cut_query = true};
  if (text == "pathq") return {.placed = true, .key = "{uri}"};
  for (const std::string_view name : {"req.hdr", "hdr"})
    if (const std::string_view header = argument(text, name); !header.empty())
      return named_key("header", header);
  for (const std::string_view name : {"url_param", "urlp"})
    if (const std::string_view parameter = argument(text, name); !parameter.empty())
      return named_key("query", parameter);
  for (const std::string_view name : {"req.cook", "cook"})
    if (const std::string_view cookie = argument(text, name); !cookie.empty())
      return named_key("cookie", cookie);
  return lost_key(fmt::format("the expression {} has no equal in a key template", text));
}

}  // namespace

HaproxyKey haproxy_key(Words words) {
  const std::string_view algorithm = word(words, 1);
  if (algorithm == "uri") return uri_key(words);
  if (algorithm == "url_param") return named_key("query", word(words, 2));
  if (algorithm == "hash") return expression_key(word(words, 2));
  if (algorithm == "source")
    return lost_key("balance source hashes the octets of the client's address, a key its text");
  if (const std::string_view header = argument(algorithm, "hdr"); !header.empty()) {
    HaproxyKey key = named_key("header", header);
    if (has(words, "use_domain_only")) key.moves = "use_domain_only has no equal in a key template";
    return key;
  }
  if (algorithm.starts_with("rdp-cookie")) return lost_key("rdp-cookie is no part of HTTP");
  return {};
}

}  // namespace clockwise::importer
