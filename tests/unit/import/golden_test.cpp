// Whole files: each of tests/golden/import gives exactly the YAML that stands in its `expected`
// folder, with the notes at its top, and places every key as its source does. The files in `bad`
// are refused for the reasons in their last lines (`# expect LINE:COLUMN TEXT`), and for no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/load.h"
#include "import/import.h"
#include "import/prove.h"
#include "import/write.h"

namespace clockwise::importer {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(CLOCKWISE_SOURCE_DIR) / "tests/golden/import";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Files are named as if the folder were the current one, so that notes name no machine.
Files golden_files() {
  const auto read = [](const std::string& name) {
    using Contents = std::variant<std::string, std::string>;
    if (!fs::exists(kFolder / name))
      return Contents(std::in_place_index<1>, "no such file or directory");
    return Contents(std::in_place_index<0>, text_of(kFolder / name));
  };
  const auto match = [](const std::string& pattern) {
    std::vector<std::string> names = real_files().match(kFolder / pattern);
    for (std::string& name : names) name = fs::relative(name, kFolder);
    return names;
  };
  return {read, match};
}

Outcome read_file(const std::string& name) {
  const auto source =
      std::get<config::Source>(config::Source::decode(name, text_of(kFolder / name)));
  return read(guess_format(name, source.text())->format, source, golden_files());
}

class GoldenImport : public testing::TestWithParam<const char*> {};

TEST_P(GoldenImport, GivesItsYaml) {
  const Outcome outcome = read_file(GetParam());
  if (const auto* problems = std::get_if<Problems>(&outcome)) FAIL() << problems->front().text();
  const std::string yaml = to_yaml(std::get<Import>(outcome));
  const fs::path expected = kFolder / "expected" / (std::string(GetParam()) + ".yaml");
  EXPECT_EQ(yaml, text_of(expected)) << "if this is what it should be, write it to " << expected;
}

TEST_P(GoldenImport, GivesAConfigurationThatLoads) {
  const Outcome outcome = read_file(GetParam());
  const auto yaml = [&](const std::string&) {
    return std::variant<std::string, std::string>(std::in_place_index<0>,
                                                  to_yaml(std::get<Import>(outcome)));
  };
  const config::LoadResult result =
      config::load("yaml", yaml, [](std::string_view) { return std::nullopt; });
  const auto* failure = std::get_if<config::Failure>(&result);
  EXPECT_EQ(failure, nullptr) << failure->problems.front().text();
}

TEST_P(GoldenImport, PlacesEveryKeyAsItsSourceDoes) {
  const Outcome outcome = read_file(GetParam());
  const Proof proof = prove(std::get<Import>(outcome), 2'000, [](std::uint64_t) {});
  const auto* pools = std::get_if<std::vector<PoolProof>>(&proof);
  ASSERT_NE(pools, nullptr) << std::get<config::Failure>(proof).problems.front().text();
  std::size_t compared = 0;
  for (const PoolProof& pool : *pools) {
    EXPECT_EQ(pool.differences, 0u) << pool.pool << ": " << pool.first.key;
    compared += pool.keys;
  }
  const bool has_model = !std::string_view(GetParam()).starts_with("mcrouter");
  EXPECT_EQ(compared > 0, has_model);
}

INSTANTIATE_TEST_SUITE_P(Import, GoldenImport,
                         testing::Values("nginx.conf", "nutcracker.yml", "haproxy.cfg",
                                         "envoy.yaml", "mcrouter.json", "mcrouter_prefixes.json"),
                         [](const auto& file) {
                           const std::string name = file.param;
                           return name.substr(0, name.find('.'));
                         });

struct Expected {
  std::string place;  // LINE:COLUMN; 0:0 for the file as a whole
  std::string text;
};

std::vector<Expected> expectations(const std::string& text) {
  std::vector<Expected> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(" expect ");
    if (at == std::string::npos || at > 2) continue;
    std::istringstream rest(line.substr(at + 8));
    Expected expected;
    rest >> expected.place >> std::ws;
    std::getline(rest, expected.text);
    out.push_back(expected);
  }
  return out;
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder / "bad"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class BadImport : public testing::TestWithParam<std::string> {};

TEST_P(BadImport, IsRefusedAtItsPlaceForItsReason) {
  const Outcome outcome = read_file("bad/" + GetParam());
  const auto* problems = std::get_if<Problems>(&outcome);
  ASSERT_NE(problems, nullptr) << "is accepted";
  const std::vector<Expected> expected = expectations(text_of(kFolder / "bad" / GetParam()));
  std::string all;
  for (const config::Problem& problem : *problems) all += problem.headline() + "\n";
  ASSERT_EQ(problems->size(), expected.size()) << all;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const config::Position& at = (*problems)[i].position;
    const std::string place = std::to_string(at.line) + ":" + std::to_string(at.column);
    EXPECT_THAT(place, testing::StartsWith(expected[i].place)) << all;
    EXPECT_THAT((*problems)[i].message, testing::HasSubstr(expected[i].text)) << all;
  }
}

INSTANTIATE_TEST_SUITE_P(Import, BadImport, testing::ValuesIn(bad_files()), [](const auto& file) {
  std::string name = file.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

Import imported(Format format, const std::string& text) {
  const auto source = std::get<config::Source>(config::Source::decode("source", text));
  return std::get<Import>(read(format, source, golden_files()));
}

// Reads a text as nginx.conf without includes.
Import nginx(const std::string& text) { return imported(Format::nginx, text); }

TEST(ImportProof, FindsAServerThatOwnsOtherKeys) {
  Import import =
      nginx("upstream a { hash $request_uri consistent; server 10.0.0.1:80; server 10.0.0.2:80; }");
  import.pools[0].servers[1].label = "10.0.0.3:80";  // as if it had been written wrongly
  const Proof proof = prove(import, 1'000, [](std::uint64_t) {});
  const PoolProof& pool = std::get<std::vector<PoolProof>>(proof).front();
  EXPECT_EQ(pool.keys, 1'000u);
  EXPECT_GT(pool.differences, 100u);
  EXPECT_NE(pool.first.source, pool.first.here);
}

TEST(ImportProof, SaysWhereNothingIsKept) {
  const Import import = nginx(
      "upstream a { hash $uri$is_args; server 10.0.0.1:80; server 10.0.0.2:80; }\n"
      "upstream b { server 10.0.0.1:80; }\n");
  const Proof proof = prove(import, 1'000, [](std::uint64_t) {});
  const auto& pools = std::get<std::vector<PoolProof>>(proof);
  EXPECT_FALSE(pools[0].kept);
  EXPECT_THAT(pools[0].why_not, testing::HasSubstr("$is_args"));
  EXPECT_TRUE(pools[1].kept);
  EXPECT_THAT(pools[1].why_not, testing::HasSubstr("looks at no key"));
}

TEST(ImportProof, IsNoneWhereTheSourcePlacesByWhatIsNotRead) {
  const std::string cluster =
      "static_resources:\n  clusters:\n  - name: a\n    load_assignment:\n      endpoints:\n"
      "      - load_balancing_weight: 3\n        lb_endpoints:\n        - endpoint: {address: "
      "{socket_address: {address: 10.0.0.1, port_value: 80}}}\n";
  const std::vector<std::tuple<Format, std::string, std::string>> sources{
      {Format::haproxy,
       "backend b\n mode http\n balance uri\n hash-type consistent\n"
       " server-template t 1-3 a.example:80\n server a1 10.0.0.1:80\n",
       "server-template"},
      {Format::envoy, cluster + "    load_balancing_policy: {policies: []}\n",
       "load_balancing_policy"},
      {Format::envoy,
       cluster +
           "    lb_policy: RING_HASH\n    common_lb_config: {locality_weighted_lb_config: {}}\n",
       "locality_weighted_lb_config"}};
  for (const auto& [format, text, why] : sources)
    EXPECT_THAT(imported(format, text).pools.at(0).moves, testing::HasSubstr(why));
}

TEST(ImportProof, AsksTheSameKeysInEachRun) {
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < 5'000; ++i) keys.insert(sample_key(i));
  EXPECT_GT(keys.size(), 4'500u);
  EXPECT_EQ(sample_key(4), sample_key(4));
  const bool utf8 = std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
    return std::any_of(key.begin(), key.end(), [](char c) { return (c & 0x80) != 0; });
  });
  EXPECT_TRUE(utf8);
}

TEST(ImportName, IsTheSameWhateverStandsBesideTheServer) {
  const Import before = nginx("upstream a { server 10.0.0.1:80; server 10.0.0.2:80; }");
  const Import after = nginx("upstream a { server 10.0.0.9:80; server 10.0.0.2:80; }");
  EXPECT_EQ(before.pools[0].servers[1].name, after.pools[0].servers[1].name);
}

std::string notes_of(const Import& import) {
  std::string notes;
  for (const Note& note : import.notes) notes += note.text() + "\n";
  return notes;
}

TEST(ImportInclude, OfAFileInItselfEnds) {
  for (const std::string include : {"part.conf", "p*.conf"}) {
    const auto source = std::get<config::Source>(config::Source::decode(
        "a/main.conf", "upstream a { server 10.0.0.1:80; }\ninclude part.conf;\n"));
    const auto read_part = [&](const std::string& name) {
      EXPECT_EQ(name, "a/part.conf");
      return std::variant<std::string, std::string>(std::in_place_index<0>,
                                                    "include " + include + ";\n");
    };
    const auto match = [](const std::string& pattern) {
      EXPECT_EQ(pattern, "a/p*.conf");
      return std::vector<std::string>{"a/part.conf"};
    };
    const Outcome outcome = read(Format::nginx, source, {read_part, match});
    EXPECT_THAT(notes_of(std::get<Import>(outcome)),
                testing::HasSubstr("a/part.conf:1: include \"" + include +
                                   "\" is not followed: a/part.conf includes itself\n"));
  }
}

TEST(ImportInclude, OfAPatternTakesItsFilesInTheOrderOfTheirNames) {
  const fs::path folder = fs::path(testing::TempDir()) / "clockwise-import-include";
  fs::create_directories(folder / "conf.d");
  std::ofstream(folder / "conf.d/b.conf") << "upstream b { server 10.0.0.2:80; }\n";
  std::ofstream(folder / "conf.d/a.conf") << "upstream a { server 10.0.0.1:80; }\n";
  std::ofstream(folder / "conf.d/.hidden.conf") << "upstream c { server 10.0.0.3:80; }\n";
  std::ofstream(folder / "conf.d/d.off") << "upstream d { server 10.0.0.4:80; }\n";
  const auto source = std::get<config::Source>(config::Source::decode(
      folder / "nginx.conf", "http { include conf.d/*.conf; include sites/*; }\n"));
  const Import import = std::get<Import>(read(Format::nginx, source, real_files()));
  fs::remove_all(folder);
  std::vector<std::string> pools;
  for (const Pool& pool : import.pools) pools.push_back(pool.name);
  EXPECT_THAT(pools, testing::ElementsAre("a", "b"));
  EXPECT_THAT(notes_of(import),
              testing::HasSubstr("nginx.conf:1: include \"sites/*\" names no file"));
}

TEST(ImportNginx, KeepsTheTextOfAPortWithZeros) {
  const Import import =
      nginx("upstream a { hash $request_uri consistent; server 10.0.0.1:080; server [fd00::2]; }");
  EXPECT_EQ(import.pools[0].servers[0].address, "10.0.0.1:80");
  EXPECT_EQ(import.pools[0].servers[0].label, "10.0.0.1:080");
  EXPECT_EQ(import.pools[0].servers[1].address, "[fd00::2]:80");
  EXPECT_EQ(import.pools[0].servers[1].label, "[fd00::2]");
}

TEST(ImportNginx, TakesTheLastMethod) {
  EXPECT_TRUE(nginx("upstream a { least_conn; hash $uri; server h:80; }").pools[0].placed);
  EXPECT_FALSE(nginx("upstream a { hash $uri; least_conn; server h:80; }").pools[0].placed);
}

TEST(ImportNginx, DoesNotProveWhatLuaChooses) {
  const Import import = nginx(
      "upstream a { hash $uri; server 0.0.0.1:80; balancer_by_lua_block { if x then y{} end } }\n"
      "upstream b { hash $uri; server h:80; }\n");
  EXPECT_THAT(import.pools.at(0).moves, testing::HasSubstr("balancer_by_lua_block"));
  EXPECT_EQ(import.pools.at(1).moves, "");
}

std::vector<std::string> refusals(Format format, const std::string& text) {
  const auto source = std::get<config::Source>(config::Source::decode("source", text));
  const Outcome outcome = read(format, source, golden_files());
  std::vector<std::string> lines;
  if (const auto* problems = std::get_if<Problems>(&outcome))
    for (const config::Problem& problem : *problems) lines.push_back(problem.headline());
  return lines;
}

TEST(ImportOfNothing, SaysWhatWasSeenAndWhyItWasNotTaken) {
  EXPECT_THAT(
      refusals(Format::haproxy,
               "defaults\n mode tcp\nfrontend f\n default_backend db\n"
               "backend db\n server a 10.0.0.1:5432\n"
               "listen redis\n mode tcp\n server a 10.0.0.1:6379\n"
               "backend empty\n mode http\n"),
      testing::ElementsAre(
          testing::HasSubstr("has no pool to import, since none of these becomes one:"),
          testing::HasSubstr("source:5:1: backend db is of mode tcp: only requests of HTTP"),
          testing::HasSubstr("source:7:1: listen redis is of mode tcp"),
          testing::HasSubstr("source:10:1: backend empty: has no server")));
  EXPECT_THAT(refusals(Format::haproxy, "backend db\n server a 10.0.0.1:5432\n"),
              testing::Contains(testing::HasSubstr("backend db has no mode, which is tcp")));
  EXPECT_THAT(
      refusals(Format::envoy, "static_resources:\n  clusters:\n  - {name: a, lb_policy: MAGLEV}\n"),
      testing::Contains(testing::HasSubstr("source:3:5: cluster a: has no endpoint")));
  EXPECT_THAT(refusals(Format::nginx, "stream { upstream a { server 10.0.0.1:80; } }"),
              testing::Contains(testing::HasSubstr("source:1:1: stream is not carried over")));
  EXPECT_THAT(refusals(Format::nginx, "events { }"),
              testing::ElementsAre(testing::HasSubstr("nothing in it reads as nginx's")));
}

constexpr const char* kHashed = " mode http\n balance uri\n hash-type consistent\n";

TEST(ImportHaproxy, RefusesASecondOfOneName) {
  const std::string text = std::string("backend a\n") + kHashed +
                           " server x h:1\n server y h:2\n server x h:3\n"
                           "frontend a\n mode http\nlisten b\n" +
                           kHashed + " server x h:1\nbackend b\n mode http\n server x h:1\n";
  EXPECT_THAT(refusals(Format::haproxy, text),
              testing::ElementsAre(
                  testing::HasSubstr("15:9: a second backend \"b\": the first stands on line 10"),
                  testing::HasSubstr("7:9: a second server \"x\": the first stands on line 5")));
}

TEST(ImportHaproxy, DoesNotProveWhatDependsOnTheMachine) {
  const Import import = imported(
      Format::haproxy, std::string(".if defined(BIG)\nbackend a\n") + kHashed +
                           " server x h:1\n.else\nbackend a\n" + kHashed +
                           " server x h:1\n server y h:2\n.endif\n.notice \"read\"\nbackend b\n" +
                           kHashed + " server x h:1\nbackend c\n" + kHashed +
                           " server x h:1\n .if feature(LUA)\n server y h:2\n .endif\n");
  ASSERT_EQ(import.pools.size(), 4u);
  EXPECT_THAT(import.pools[0].moves, testing::HasSubstr("decided by .if when HAProxy starts"));
  EXPECT_NE(import.pools[1].moves, "");
  EXPECT_EQ(import.pools[2].moves, "");
  EXPECT_NE(import.pools[3].moves, "");
  EXPECT_THAT(notes_of(import),
              testing::AllOf(testing::HasSubstr("source:1: .if is not carried over"),
                             testing::HasSubstr("source:8: a second backend \"a\""),
                             testing::HasSubstr("source:15: .notice is not carried over")));
  EXPECT_THAT(refusals(Format::haproxy, ".else\n.if true\nbackend a\n mode http\n server x h:1\n"),
              testing::ElementsAre(testing::HasSubstr("1:1: .else without an .if"),
                                   testing::HasSubstr("2:1: the .if is never closed")));
}

TEST(ImportHaproxy, TakesOneOfARangeOfPorts) {
  const Import import =
      imported(Format::haproxy,
               std::string("listen a\n bind :8000-8010\n bind [fd00::1]:90-91,unix@/run/a-b\n"
                           " bind fd@3\n") +
                   kHashed + " server x h:1\n");
  std::vector<std::string> addresses;
  for (const Listener& listener : import.listeners) addresses.push_back(listener.address);
  EXPECT_THAT(addresses, testing::ElementsAre("0.0.0.0:8000", "[fd00::1]:90", "unix:/run/a-b"));
  EXPECT_THAT(notes_of(import),
              testing::AllOf(testing::HasSubstr("source:2: bind on the ports 8000-8010: a listener "
                                                "here has one, 0.0.0.0:8000 is written"),
                             testing::HasSubstr("source:4: bind \"fd@3\" is not carried over")));
}

TEST(ImportEnvoy, HashesTheCanonicalTextOfAnAddress) {
  const auto endpoint = [](const std::string& address) {
    return "        - endpoint: {address: {socket_address: {address: \"" + address +
           "\", port_value: 80}}}\n";
  };
  const Import import = imported(
      Format::envoy,
      "static_resources:\n  clusters:\n  - name: a\n    lb_policy: RING_HASH\n"
      "    common_lb_config:\n      consistent_hashing_lb_config: {hash_balance_factor: 150}\n"
      "      healthy_panic_threshold: {value: 10}\n"
      "    load_assignment:\n      endpoints:\n      - lb_endpoints:\n" +
          endpoint("0:0:0:0:0:0:0:1") + endpoint("FD00:0:0::000a") + endpoint("::ffff:10.0.0.1") +
          endpoint("10.0.0.1"));
  std::vector<std::string> labels;
  for (const Server& server : import.pools.at(0).servers) {
    labels.push_back(server.label);
    EXPECT_EQ(server.address, server.label);
  }
  EXPECT_THAT(labels, testing::ElementsAre("[::1]:80", "[fd00::a]:80", "[::ffff:10.0.0.1]:80",
                                           "10.0.0.1:80"));
  EXPECT_THAT(notes_of(import),
              testing::AllOf(testing::HasSubstr("source:6: cluster a: hash_balance_factor is not "
                                                "carried over"),
                             testing::HasSubstr("source:7: cluster a: healthy_panic_threshold")));
  EXPECT_THAT(refusals(Format::envoy,
                       "static_resources:\n  clusters:\n  - name: a\n    load_assignment:\n"
                       "      endpoints:\n      - lb_endpoints:\n" +
                           endpoint("fd00:::1")),
              testing::ElementsAre(testing::HasSubstr("source:7:31: \"fd00:::1:80\" ")));
}

TEST(ImportText, OfAProblemIsOneLine) {
  EXPECT_THAT(refusals(Format::nginx, "upstream \"a\\nb\" { server; }"),
              testing::Contains(testing::HasSubstr("upstream a?b: server has no address")));
}

TEST(ImportText, WithALineBreakIsRefused) {
  const auto source = std::get<config::Source>(
      config::Source::decode("nginx.conf", "upstream a { hash \"a\\nb\"; server h:80; }"));
  const Outcome outcome = read(Format::nginx, source, golden_files());
  ASSERT_TRUE(std::holds_alternative<Problems>(outcome));
  EXPECT_THAT(std::get<Problems>(outcome).front().message,
              testing::HasSubstr("is not one line of printable text"));
}

}  // namespace
}  // namespace clockwise::importer
