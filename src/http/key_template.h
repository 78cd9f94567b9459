// The key of a request: a template of literals and placeholders, such as "{host}{uri}".
//
// Octets are taken as received: nothing is decoded, merged or sorted unless the placeholder says
// so, and a target in absolute-form gives the same key as in origin-form. What each placeholder
// stands for:
//
//   {uri} {path} {query}  of the target; the query without its "?"
//   {query:NAME}          value of the first parameter NAME
//   {uri:normalized}      {path:decoded}: see http/normalize.h
//   {host}                lower case, without port and without a dot at its end (nginx: $host); for
//                         another form see HostForm
//   {scheme} {method} {client_ip}
//   {header:NAME}         values of all lines NAME, joined by ", " (RFC 9110 5.3); {header:Host} is
//                         the authority of the target where it has one (RFC 9112 3.2.2)
//   {cookie:NAME}         value of the first pair NAME (RFC 6265 4.2)
//
// Names of headers in any case, all other names octet by octet. Braces stand for nothing else.
// Pure; a template is immutable, any number of threads may render it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/head.h"

namespace clockwise::http {

// What a key may be made of. Absent parts are empty.
struct KeyParts {
  std::string_view uri;          // path and query, origin-form
  std::string_view host = {};    // RequestHead::authority, port included
  std::string_view scheme = {};  // http, https
  std::string_view method = {};
  std::string_view client_ip = {};
  std::string_view octets = {};            // of the head, for the lines below
  std::span<const FieldLine> fields = {};  // for {header:NAME} and {cookie:NAME}
};

// What {host} stands for.
enum class HostForm : std::uint8_t {
  name,  // as above: one site, whatever its port
  // Lower case, with its port unless that is the default of the scheme (RFC 9110 4.2.3): what
  // stands behind one port is not to be taken for what stands behind another. A dot at the end
  // stays, since servers tell such names apart.
  authority,
};

class KeyTemplate {
 public:
  // "{uri}".
  KeyTemplate();

  // Empty text means "{uri}". `ignore`: query parameters that {uri:normalized} drops; a trailing *
  // stands for any ending. The error says what is wrong with the text, or with the entry.
  [[nodiscard]] static Result<KeyTemplate> parse(std::string_view text,
                                                 const std::vector<std::string>& ignore = {},
                                                 HostForm host_form = HostForm::name);

  // The key of one request: a view into `parts` where the template is a single part that stands
  // there as it is, else into `scratch`, whose memory is used again. An empty key falls back to
  // {uri}. Linear in the octets of the request for each placeholder, sorting apart.
  [[nodiscard]] std::string_view render(const KeyParts& parts, std::string& scratch) const;

  // Is it {uri} alone? Then the key is the request target, and nobody needs to call render().
  [[nodiscard]] bool is_uri() const noexcept {
    return parts_.size() == 1 && parts_.front().kind == Kind::uri;
  }

 private:
  enum class Kind : std::uint8_t {
    literal,
    uri,
    uri_normalized,
    path,
    path_decoded,
    query,
    query_parameter,
    host,
    scheme,
    method,
    client_ip,
    header,
    cookie,
  };
  struct Part {
    Kind kind;
    std::string text;  // of a literal; the NAME of a parameter, header or cookie
  };
  class Reader;

  static bool stands_as_it_is(Kind kind) noexcept;
  [[nodiscard]] static std::string_view url_of(const KeyParts& parts, std::string& scratch);
  static std::string_view find(const Part& part, const KeyParts& parts) noexcept;
  void append(const Part& part, const KeyParts& parts, std::string& key) const;

  std::vector<Part> parts_;
  std::vector<std::string> ignore_;  // percent-encoding normalised
  HostForm host_form_ = HostForm::name;
  bool is_url_ = false;
};

}  // namespace clockwise::http
