// The two syntaxes that are no YAML: words, quotes, comments, places.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/haproxy_syntax.h"
#include "import/nginx_syntax.h"

namespace clockwise::importer {
namespace {

config::Source source_of(std::string text) {
  return std::get<config::Source>(config::Source::decode("test.conf", std::move(text)));
}

// "name word {child word {} }": what was read, in one line.
std::string shown(const std::vector<Directive>& directives) {
  std::string out;
  for (const Directive& directive : directives) {
    if (!out.empty()) out += ' ';
    for (const Word& word : directive.words) out += "<" + word.text + ">";
    if (directive.block) out += "{" + shown(directive.children) + "}";
  }
  return out;
}

struct Row {
  const char* name;
  const char* text;
  const char* expected;
};

class NginxSyntax : public testing::TestWithParam<Row> {};

TEST_P(NginxSyntax, ReadsWords) {
  const config::Source source = source_of(GetParam().text);
  const auto parsed = parse_nginx(source);
  const auto* problem = std::get_if<config::Problem>(&parsed);
  ASSERT_EQ(problem, nullptr) << problem->message;
  EXPECT_EQ(shown(std::get<std::vector<Directive>>(parsed)), GetParam().expected);
}

constexpr Row kNginx[] = {
    {"empty", "", ""},
    {"comment", "# a; b {\n", ""},
    {"directive", "a b  c;d;", "<a><b><c> <d>"},
    {"block", "a b { c; d { } }", "<a><b>{<c> <d>{}}"},
    {"block_without_blank", "a b{c;}", "<a><b>{<c>}"},
    {"lines", "a\r\n\tb\n;", "<a><b>"},
    {"quotes", "a \"b ; { #\" 'c \"d';", "<a><b ; { #><c \"d>"},
    {"quote_before_a_block", "a 'b'{ }", "<a><b>{}"},
    {"quote_inside_a_word", "a b\"c;", "<a><b\"c>"},
    {"hash_inside_a_word", "a b#c;", "<a><b#c>"},
    {"escaped_quote", R"(a "b\"c" 'd\'e' f\;g;)", R"(<a><b"c><d'e><f\;g>)"},
    {"other_escapes", R"(a \.php$ b\\c d\ne;)", "<a><\\.php$><b\\c><d\ne>"},
    {"variable", "a ${b}c $d{ e; }", "<a><${b}c><$d>{<e>}"},
    {"closing_brace_in_a_word", "a b}c;", "<a><b}c>"},
    {"lua", "a_by_lua_block { if x then return {1, {}} end }\nb;", "<a_by_lua_block>{} <b>"},
    {"lua_with_a_parameter", "set_by_lua_block $x { return \"}\" }b;",
     "<set_by_lua_block><$x>{} <b>"},
    {"lua_strings", R"(a_by_lua_block { x = '}' .. "\"}" .. '\\' } b;)", "<a_by_lua_block>{} <b>"},
    {"lua_comments", "a_by_lua_block { -- it's a }\n --[[ } \n } ]] x() } b;",
     "<a_by_lua_block>{} <b>"},
    {"lua_long_strings", "a_by_lua_block { x = [==[ }]] } ]==] .. t[[[}]]] } b;",
     "<a_by_lua_block>{} <b>"},
    {"lua_indices", "a_by_lua_block { x[t[1]] = y[=] } b;", "<a_by_lua_block>{} <b>"},
    {"lua_in_a_block", "s { a_by_lua_block { } b; }", "<s>{<a_by_lua_block>{} <b>}"},
    {"utf8", "a \"\u043a\u043b\u044e\u0447\";", "<a><\u043a\u043b\u044e\u0447>"},
};

INSTANTIATE_TEST_SUITE_P(Import, NginxSyntax, testing::ValuesIn(kNginx),
                         [](const auto& row) { return row.param.name; });

TEST(NginxSyntaxPlaces, PointAtTheWord) {
  const config::Source source = source_of("a;\n  b \"c\";\n");
  const auto parsed = parse_nginx(source);
  const auto& directives = std::get<std::vector<Directive>>(parsed);
  EXPECT_EQ(directives[1].place(), (config::Place{2, 3}));
  EXPECT_EQ(directives[1].words[1].place, (config::Place{2, 5}));
}

TEST(NginxSyntaxDepth, IsLimited) {
  std::string text;
  for (int i = 0; i < 65; ++i) text += "a {";
  const config::Source source = source_of(text);
  const auto parsed = parse_nginx(source);
  ASSERT_TRUE(std::holds_alternative<config::Problem>(parsed));
  EXPECT_EQ(std::get<config::Problem>(parsed).message, "more than 64 blocks deep");
}

class HaproxySyntax : public testing::TestWithParam<Row> {};

TEST_P(HaproxySyntax, ReadsWords) {
  const auto parsed = parse_haproxy(source_of(GetParam().text));
  const auto* problem = std::get_if<config::Problem>(&parsed);
  ASSERT_EQ(problem, nullptr) << problem->message;
  std::string shown;
  for (const ConfigLine& line : std::get<std::vector<ConfigLine>>(parsed)) {
    for (const Word& word : line) shown += "<" + word.text + ">";
    shown += "\n";
  }
  EXPECT_EQ(shown, GetParam().expected);
}

constexpr Row kHaproxy[] = {
    {"empty", "", ""},
    {"blank_lines", "\n \t\r\n# comment\n", ""},
    {"words", "a b\tc\n  d", "<a><b><c>\n<d>\n"},
    {"comment_behind", "a b # c\na b#c\n", "<a><b>\n<a><b>\n"},
    {"escapes", R"(a\ b c\#d \"e)", "<a b><c#d><\"e>\n"},
    {"double_quotes", R"(a "b c\"d" e"f g"h)", "<a><b c\"d><ef gh>\n"},
    {"single_quotes", R"(a 'b \c "d' "")", "<a><b \\c \"d><>\n"},
};

INSTANTIATE_TEST_SUITE_P(Import, HaproxySyntax, testing::ValuesIn(kHaproxy),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace clockwise::importer
