#include "http/normalize.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <utility>

#include "http/octets.h"

namespace clockwise::http {
namespace {

// The octet that an escape at `at` stands for; -1 where none stands.
int escaped(std::string_view text, std::size_t at) noexcept {
  if (text[at] != '%' || text.size() - at < 3) return -1;
  const int high = hex_value(text[at + 1]);
  const int low = hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// RFC 3986 2.3.
bool is_unreserved(char octet) noexcept {
  const char letter = lower(octet);
  return (letter >= 'a' && letter <= 'z') || is(octet, kDigit) || octet == '-' || octet == '.' ||
         octet == '_' || octet == '~';
}

bool has_malformed_escape(std::string_view text) noexcept {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 3)) {
    if (escaped(text, at) < 0) return true;
  }
  return false;
}

// Resolves the segment that begins at `segment`, right behind a slash or at `root`, when it is "."
// or "..". Every octet is passed over once when it is written and once when it is dropped.
void resolve_dots(std::string& out, std::size_t root, std::size_t segment) {
  const std::string_view last = std::string_view(out).substr(segment);
  if (last != "." && last != "..") return;
  const bool up = last.size() == 2;
  out.resize(segment);
  if (!up || segment <= root + 1) return;
  const std::string_view parent = std::string_view(out).substr(root, segment - 1 - root);
  const std::size_t slash = parent.rfind('/');
  out.resize(root + (slash == std::string_view::npos ? 0 : slash + 1));
}

bool is_ignored(std::string_view name, std::span<const std::string> ignore) noexcept {
  return std::ranges::any_of(ignore, [name](std::string_view pattern) {
    if (!pattern.ends_with('*')) return name == pattern;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

// Appends `name=value` in normal form; returns where the name ends.
std::size_t append_parameter(std::string_view parameter, std::string& out) {
  const std::size_t equals = std::min(parameter.find('='), parameter.size());
  append_normal_escapes(parameter.substr(0, equals), out);
  const std::size_t name_end = out.size();
  if (equals == parameter.size()) return name_end;
  out.push_back('=');
  append_normal_escapes(parameter.substr(equals + 1), out);
  return name_end;
}

// The parameters are written behind what `out` holds, then once more in their order, and the first
// writing is taken out again. Room is made beforehand, so that views of them stay.
void append_normal_query(std::string_view query, std::span<const std::string> ignore,
                         std::string& out) {
  const std::size_t begin = out.size();
  out.reserve(begin + 2 * query.size() + 1);
  boost::container::small_vector<std::string_view, 64> parameters;
  each_piece(query, '&', [&](std::string_view parameter) {
    if (parameter.empty()) return true;
    const std::size_t at = out.size();
    const std::size_t name_end = append_parameter(parameter, out);
    const std::string_view normal = std::string_view(out).substr(at);
    if (is_ignored(normal.substr(0, name_end - at), ignore))
      out.resize(at);
    else
      parameters.push_back(normal);
    return true;
  });
  std::ranges::sort(parameters);
  const std::size_t sorted = out.size();
  char separator = '?';
  for (const std::string_view parameter : parameters) {
    out.push_back(std::exchange(separator, '&'));
    out.append(parameter);
  }
  out.erase(begin, sorted - begin);
}

}  // namespace

void append_decoded_path(std::string_view path, std::string& out) {
  const std::size_t root = out.size();
  std::size_t segment = root;
  for (std::size_t at = 0; at < path.size(); ++at) {
    char octet = path[at];
    if (const int decoded = escaped(path, at); decoded >= 0) {
      octet = static_cast<char>(decoded);
      at += 2;
    }
    if (octet != '/') {
      out.push_back(octet);
      continue;
    }
    resolve_dots(out, root, segment);
    if (out.size() == root || out.back() != '/') out.push_back('/');
    segment = out.size();
  }
  resolve_dots(out, root, segment);
}

bool leaves_root(std::string_view path) noexcept {
  std::ptrdiff_t depth = 0;
  std::size_t size = 0, dots = 0;  // of the segment
  for (std::size_t at = 0; at <= path.size(); ++at) {
    const int decoded = at < path.size() ? escaped(path, at) : -1;
    const char octet = decoded >= 0       ? static_cast<char>(decoded)
                       : at < path.size() ? path[at]
                                          : '/';
    if (decoded >= 0) at += 2;
    if (octet != '/') {
      ++size;
      dots += octet == '.' ? 1 : 0;
      continue;
    }
    const bool up = size == 2 && dots == 2;
    const bool stays = size == 0 || (size == 1 && dots == 1);
    depth += up ? -1 : stays ? 0 : 1;
    if (depth < 0) return true;
    size = dots = 0;
  }
  return false;
}

void append_normal_escapes(std::string_view text, std::string& out) {
  if (has_malformed_escape(text)) {
    out.append(text);
    return;
  }
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  while (true) {
    const std::size_t plain = std::min(text.find('%'), text.size());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const auto octet = static_cast<unsigned char>(escaped(text, 0));
    if (is_unreserved(static_cast<char>(octet)))
      out.push_back(static_cast<char>(octet));
    else
      out.append({'%', kDigits[octet >> 4], kDigits[octet & 15]});
    text.remove_prefix(3);
  }
}

void append_normal_uri(std::string_view uri, std::span<const std::string> ignore,
                       std::string& out) {
  const std::size_t path_end = std::min(uri.find('?'), uri.size());
  append_normal_escapes(uri.substr(0, path_end), out);
  if (path_end < uri.size()) append_normal_query(uri.substr(path_end + 1), ignore, out);
}

}  // namespace clockwise::http
