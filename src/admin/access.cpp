#include "admin/access.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/asio/ip/address.hpp>

#include "admin/describe.h"
#include "upstream/json.h"

namespace clockwise::admin {

namespace {

// "[::1]:9901" -> "::1", "localhost:9901" -> "localhost"
std::string_view host_name(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

// A page on another site can make a browser send a POST here, but the browser names that site as
// the Origin, or at least says that it is another one. A site whose own name leads here (DNS
// rebinding) names itself in both fields, so a browser must also have used an address or localhost.
bool from_another_site(const Request& request) {
  const std::string& site = request.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  if (request.origin.empty()) return false;
  const std::size_t scheme = request.origin.find("://");
  if (scheme == std::string::npos) return true;  // "null"
  const std::string_view origin = std::string_view(request.origin).substr(scheme + 3);
  if (!boost::algorithm::iequals(origin, request.host)) return true;
  const std::string_view name = host_name(request.host);
  boost::system::error_code not_an_address;
  boost::asio::ip::make_address(name, not_an_address);
  return not_an_address && !boost::algorithm::iequals(name, "localhost");
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!boost::algorithm::istarts_with(authorization, kScheme)) return {};
  return authorization.substr(
      std::min(authorization.find_first_not_of(' ', kScheme.size()), authorization.size()));
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Response error_response(unsigned status, std::string_view code, std::string_view message) {
  Response response;
  response.status = status;
  response.body = upstream::to_text(describe_error(code, message)) + "\n";
  return response;
}

std::optional<Response> refuse_other_site(const Request& request) {
  if (!from_another_site(request)) return std::nullopt;
  return error_response(403, "forbidden", "a page of another site may only read here");
}

std::optional<Response> refuse_change(const Request& request, const std::string& token) {
  if (token.empty()) {
    if (request.local) return std::nullopt;
    return error_response(403, "forbidden",
                          "without admin.token, changes are accepted from this machine only");
  }
  if (same_secret(bearer_token(request.authorization), token)) return std::nullopt;
  Response response = error_response(
      401, "unauthorized", "this call needs \"Authorization: Bearer …\" with admin.token");
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"clockwise\"");
  return response;
}

}  // namespace clockwise::admin
