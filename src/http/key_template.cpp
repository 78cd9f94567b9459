#include "http/key_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/suggest.h"
#include "http/authority.h"
#include "http/normalize.h"
#include "http/octets.h"

namespace clockwise::http {
namespace {

// The value of the first `name=value` of a list; `name` alone has an empty one. False when there is
// none.
bool find_pair(std::string_view list, char separator, std::string_view name,
               std::string_view& value) {
  return !each_piece(list, separator, [&](std::string_view pair) {
    pair = trim(pair);
    if (!pair.starts_with(name)) return true;
    const std::string_view rest = pair.substr(name.size());
    if (!rest.empty() && rest.front() != '=') return true;
    value = rest.substr(std::min<std::size_t>(1, rest.size()));
    return false;
  });
}

std::string_view path_of(std::string_view uri) noexcept { return uri.substr(0, uri.find('?')); }

std::string_view query_of(std::string_view uri) noexcept {
  const std::size_t mark = uri.find('?');
  return mark == std::string_view::npos ? std::string_view{} : uri.substr(mark + 1);
}

// Calls `visit` with the value of each line of that name until it returns true.
template <class Visit>
void each_line(const KeyParts& parts, std::string_view name, Visit visit) {
  for (const FieldLine& line : parts.fields) {
    if (line.name_size != name.size()) continue;
    if (!same_ignoring_case(name_of(parts.octets, line), name)) continue;
    if (visit(value_of(parts.octets, line))) return;
  }
}

std::string_view cookie(const KeyParts& parts, std::string_view name) {
  std::string_view value;
  each_line(parts, "cookie",
            [&](std::string_view list) { return find_pair(list, ';', name, value); });
  return value;
}

void append_header(const KeyParts& parts, std::string_view name, std::string& key) {
  bool first = true;
  each_line(parts, name, [&](std::string_view value) {
    if (!std::exchange(first, false)) key.append(", ");
    key.append(value);
    return false;
  });
}

void append_lower(std::string_view text, std::string& key) {
  const std::size_t at = key.size();
  key.resize(at + text.size());
  copy_lower(text, key.data() + at);
}

void append_authority(const KeyParts& parts, std::string& key) {
  const std::string_view host = host_of(parts.host);
  const std::string_view port = parts.host.substr(host.size());
  append_lower(host, key);
  if (!is_default_port(port, parts.scheme)) key.append(port);
}

Result<std::string> ignored_name(const std::string& pattern) {
  const std::string_view name =
      std::string_view(pattern).substr(0, pattern.size() - (pattern.ends_with('*') ? 1 : 0));
  if (pattern.empty()) return fail("is empty; a query parameter's name is wanted, or PREFIX*");
  if (name.find('*') != std::string_view::npos)
    return fail("has a * that is not its end; only NAME and PREFIX* are known");
  if (name.find_first_of("&=") != std::string_view::npos)
    return fail("has a & or =, which no query parameter's name has");
  std::string normal;
  append_normal_escapes(pattern, normal);
  return Result<std::string>(boost::system::in_place_value, std::move(normal));
}

}  // namespace

// Takes the text of a template apart.
class KeyTemplate::Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<Part>> read() {
    while (!text_.empty()) {
      if (text_.front() == '}') return fail("has a } without a {");
      if (text_.front() != '{') {
        literal();
        continue;
      }
      const std::size_t close = text_.find('}');
      if (close == std::string_view::npos) return fail("has a { without a }");
      const std::string_view inside = text_.substr(1, close - 1);
      if (!placeholder(inside)) {
        return fail(fmt::format("has an unknown placeholder {{{}}}{}", inside,
                                did_you_mean(inside, kShown)));
      }
      text_.remove_prefix(close + 1);
    }
    return std::move(parts_);
  }

 private:
  struct Word {
    std::string_view text;
    Kind kind;
  };
  static constexpr std::array<Word, 9> kWords{{{"uri", Kind::uri},
                                               {"path", Kind::path},
                                               {"query", Kind::query},
                                               {"host", Kind::host},
                                               {"scheme", Kind::scheme},
                                               {"method", Kind::method},
                                               {"client_ip", Kind::client_ip},
                                               {"uri:normalized", Kind::uri_normalized},
                                               {"path:decoded", Kind::path_decoded}}};
  static constexpr std::array<Word, 3> kWithName{
      {{"query", Kind::query_parameter}, {"header", Kind::header}, {"cookie", Kind::cookie}}};
  static constexpr std::array<std::string_view, 12> kShown{
      "uri",       "path",           "query",        "host",       "scheme",      "method",
      "client_ip", "uri:normalized", "path:decoded", "query:NAME", "header:NAME", "cookie:NAME"};

  void literal() {
    const std::string_view text = text_.substr(0, text_.find_first_of("{}"));
    parts_.push_back({Kind::literal, std::string(text)});
    text_.remove_prefix(text.size());
  }

  bool placeholder(std::string_view inside) {
    for (const Word& word : kWords) {
      if (word.text != inside) continue;
      parts_.push_back({word.kind, {}});
      return true;
    }
    const std::size_t colon = inside.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view name = inside.substr(colon + 1);
    for (const Word& word : kWithName) {
      if (word.text != inside.substr(0, colon) || !may_be_name(word.kind, name)) continue;
      parts_.push_back({word.kind, std::string(name)});
      return true;
    }
    return false;
  }

  static bool may_be_name(Kind kind, std::string_view name) {
    if (kind == Kind::query_parameter)
      return !name.empty() && name.find_first_of("&={") == std::string_view::npos;
    return is_token(name);
  }

  std::string_view text_;
  std::vector<Part> parts_;
};

KeyTemplate::KeyTemplate() : parts_{{Kind::uri, {}}} {}

Result<KeyTemplate> KeyTemplate::parse(std::string_view text,
                                       const std::vector<std::string>& ignore, HostForm host_form) {
  KeyTemplate made;
  made.host_form_ = host_form;
  made.is_url_ = text == "{scheme}://{host}{uri}" && host_form == HostForm::authority;
  if (!text.empty()) {
    auto parts = Reader(text).read();
    if (!parts) return parts.error();
    made.parts_ = std::move(*parts);
  }
  for (const std::string& pattern : ignore) {
    auto name = ignored_name(pattern);
    if (!name) return name.error();
    made.ignore_.push_back(std::move(*name));
  }
  return made;
}

bool KeyTemplate::stands_as_it_is(Kind kind) noexcept {
  return kind != Kind::uri_normalized && kind != Kind::path_decoded && kind != Kind::host &&
         kind != Kind::header;
}

// REQUIRES: the part stands somewhere as it is.
std::string_view KeyTemplate::find(const Part& part, const KeyParts& parts) noexcept {
  switch (part.kind) {
    case Kind::literal:
      return part.text;
    case Kind::uri:
      return parts.uri;
    case Kind::path:
      return path_of(parts.uri);
    case Kind::query:
      return query_of(parts.uri);
    case Kind::query_parameter: {
      std::string_view value;
      find_pair(query_of(parts.uri), '&', part.text, value);
      return value;
    }
    case Kind::scheme:
      return parts.scheme;
    case Kind::method:
      return parts.method;
    case Kind::client_ip:
      return parts.client_ip;
    case Kind::cookie:
      return cookie(parts, part.text);
    case Kind::uri_normalized:
    case Kind::path_decoded:
    case Kind::host:
    case Kind::header:
      break;
  }
  return {};
}

void KeyTemplate::append(const Part& part, const KeyParts& parts, std::string& key) const {
  if (stands_as_it_is(part.kind)) {
    key.append(find(part, parts));
  } else if (part.kind == Kind::uri_normalized) {
    append_normal_uri(parts.uri, ignore_, key);
  } else if (part.kind == Kind::path_decoded) {
    append_decoded_path(path_of(parts.uri), key);
  } else if (part.kind == Kind::host) {
    if (host_form_ == HostForm::name)
      append_lower(site_of(parts.host), key);
    else
      append_authority(parts, key);
  } else if (same_ignoring_case(part.text, "host")) {
    key.append(parts.host);
  } else {
    append_header(parts, part.text, key);
  }
}

// {scheme}://{host}{uri}, which most caches go by, at once: `scratch` is memory that only grows.
std::string_view KeyTemplate::url_of(const KeyParts& parts, std::string& scratch) {
  const std::string_view host = host_of(parts.host);
  const bool bare = is_default_port(parts.host.substr(host.size()), parts.scheme);
  const std::string_view authority = bare ? host : parts.host;
  const std::size_t size = parts.scheme.size() + 3 + authority.size() + parts.uri.size();
  if (scratch.size() < size) scratch.resize(size);
  char* const begin = scratch.data();
  char* out = std::copy(parts.scheme.begin(), parts.scheme.end(), begin);
  std::memcpy(out, "://", 3);
  out = copy_lower(authority, out + 3);
  std::copy(parts.uri.begin(), parts.uri.end(), out);
  return {begin, size};
}

std::string_view KeyTemplate::render(const KeyParts& parts, std::string& scratch) const {
  std::string_view key;
  if (parts_.size() == 1 && stands_as_it_is(parts_.front().kind)) {
    key = find(parts_.front(), parts);
  } else if (is_url_) {
    return url_of(parts, scratch);
  } else {
    scratch.clear();
    for (const Part& part : parts_) append(part, parts, scratch);
    key = scratch;
  }
  return key.empty() ? parts.uri : key;
}

}  // namespace clockwise::http
