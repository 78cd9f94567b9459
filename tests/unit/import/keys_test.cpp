// What a peer hashes, in the words of a key template here.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "import/haproxy_key.h"
#include "import/nginx_key.h"

namespace clockwise::importer {
namespace {

struct Row {
  const char* name;
  const char* text;
  const char* key;          // empty: there is none
  const char* reason = "";  // why, or what differs
};

class NginxKey : public testing::TestWithParam<Row> {};

TEST_P(NginxKey, IsTranslated) {
  const std::map<std::string, std::string, std::less<>> set{
      {"short", "$host$request_uri"}, {"circle", "$circle"}, {"twice", "$short-$short"}};
  const auto key = nginx_key(GetParam().text, [&](std::string_view name) {
    const auto found = set.find(name);
    return found == set.end() ? std::optional<std::string>() : found->second;
  });
  if (*GetParam().key == '\0') {
    ASSERT_FALSE(key) << *key;
    EXPECT_EQ(key.error().message, GetParam().reason);
  } else {
    ASSERT_TRUE(key) << key.error().message;
    EXPECT_EQ(*key, GetParam().key);
  }
}

constexpr Row kNginx[] = {
    {"request_uri", "$request_uri", "{uri}"},
    {"uri", "$uri", "{path:decoded}"},
    {"document_uri", "$document_uri", "{path:decoded}"},
    {"several", "$host$request_uri", "{host}{uri}"},
    {"braces", "${host}x${request_uri}", "{host}x{uri}"},
    {"literals", "$scheme://$host/$args", "{scheme}://{host}/{query}"},
    {"parameter", "$arg_user_id", "{query:user_id}"},
    {"cookie", "$cookie_session", "{cookie:session}"},
    {"header", "$http_x_user_id", "{header:x-user-id}"},
    {"host_header", "$http_host", "{header:host}"},
    {"client", "$remote_addr", "{client_ip}"},
    {"method", "$request_method", "{method}"},
    {"set", "$short", "{host}{uri}"},
    {"set_from_set", "$twice", "{host}{uri}-{host}{uri}"},
    {"unknown", "$is_args", "", "$is_args has no equal in a key template"},
    {"binary", "$binary_remote_addr", "", "$binary_remote_addr has no equal in a key template"},
    {"circle", "$circle", "", "$circle has no equal in a key template"},
    {"brace_as_letter", "a{b}", "",
     "a brace as a letter of the key has no equal in a key template"},
};

INSTANTIATE_TEST_SUITE_P(Import, NginxKey, testing::ValuesIn(kNginx),
                         [](const auto& row) { return row.param.name; });

class HaproxyBalance : public testing::TestWithParam<Row> {};

TEST_P(HaproxyBalance, IsTranslated) {
  std::istringstream text(GetParam().text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
  const HaproxyKey key = haproxy_key(std::vector<std::string_view>(words.begin(), words.end()));
  EXPECT_EQ(key.placed ? (key.moves.empty() ? key.key : "") : "none", GetParam().key);
  const std::string said = key.moves + key.note;
  EXPECT_NE(said.find(GetParam().reason), std::string::npos) << said;
}

constexpr Row kHaproxy[] = {
    {"uri", "balance uri", "{path}"},
    {"whole", "balance uri whole", "{uri}"},
    {"path_only", "balance uri path-only", "{path}"},
    {"length", "balance uri len 10", "", "len or depth"},
    {"depth", "balance uri depth 2 whole", "", "len or depth"},
    {"header", "balance hdr(X-User)", "{header:X-User}", "without this header"},
    {"domain", "balance hdr(host) use_domain_only", "", "use_domain_only"},
    {"parameter", "balance url_param user", "{query:user}", "without this parameter"},
    {"source", "balance source", "", "octets of the client's address"},
    {"hash_path", "balance hash path", "{path}"},
    {"hash_pathq", "balance hash pathq", "{uri}"},
    {"hash_header", "balance hash req.hdr(x-a)", "{header:x-a}"},
    {"hash_cookie", "balance hash req.cook(sid)", "{cookie:sid}"},
    {"hash_parameter", "balance hash url_param(u)", "{query:u}"},
    {"hash_other", "balance hash base32", "", "base32 has no equal"},
    {"rdp", "balance rdp-cookie", "", "no part of HTTP"},
    {"roundrobin", "balance roundrobin", "none"},
    {"leastconn", "balance leastconn", "none"},
};

INSTANTIATE_TEST_SUITE_P(Import, HaproxyBalance, testing::ValuesIn(kHaproxy),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace clockwise::importer
