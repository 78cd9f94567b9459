// Whole files: each of tests/golden/import gives exactly the YAML that stands in its `expected`
// folder, with the notes at its top, and places every key as its source does. The files in `bad`
// are refused for the reasons in their last lines (`# expect LINE:COLUMN TEXT`), and for no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

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
config::FileReader reader() {
  return [](const std::string& name) {
    using Contents = std::variant<std::string, std::string>;
    if (!fs::exists(kFolder / name))
      return Contents(std::in_place_index<1>, "no such file or directory");
    return Contents(std::in_place_index<0>, text_of(kFolder / name));
  };
}

Outcome read_file(const std::string& name) {
  const auto source =
      std::get<config::Source>(config::Source::decode(name, text_of(kFolder / name)));
  return read(guess_format(name, source.text())->format, source, reader());
}

class GoldenImport : public testing::TestWithParam<const char*> {};

TEST_P(GoldenImport, GivesItsYaml) {
  const Outcome outcome = read_file(GetParam());
  if (const auto* problems = std::get_if<Problems>(&outcome)) FAIL() << problems->front().text();
  const std::string yaml = to_yaml(std::get<Import>(outcome));
  const fs::path expected = kFolder / "expected" / (std::string(GetParam()) + ".yaml");
  EXPECT_EQ(yaml, text_of(expected)) << "if this is what it should be, write it to " << expected;
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
  const bool has_model = std::string_view(GetParam()) != "mcrouter.json";
  EXPECT_EQ(compared > 0, has_model);
}

INSTANTIATE_TEST_SUITE_P(Import, GoldenImport,
                         testing::Values("nginx.conf", "nutcracker.yml", "haproxy.cfg",
                                         "envoy.yaml", "mcrouter.json"),
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
  return std::get<Import>(read(format, source, reader()));
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

TEST(ImportInclude, OfAFileInItselfEnds) {
  const auto source = std::get<config::Source>(config::Source::decode(
      "a/main.conf", "upstream a { server 10.0.0.1:80; }\ninclude part.conf;\n"));
  const auto reader = [](const std::string& name) {
    EXPECT_EQ(name, "a/part.conf");
    return std::variant<std::string, std::string>(std::in_place_index<0>, "include part.conf;\n");
  };
  const Outcome outcome = read(Format::nginx, source, reader);
  std::string notes;
  for (const Note& note : std::get<Import>(outcome).notes) notes += note.text() + "\n";
  EXPECT_THAT(notes, testing::HasSubstr(
                         "a/part.conf:1: include \"part.conf\" is not followed: the file includes "
                         "itself\n"));
}

TEST(ImportText, WithALineBreakIsRefused) {
  const auto source = std::get<config::Source>(
      config::Source::decode("nginx.conf", "upstream a { server \"a\\nb\"; }"));
  const Outcome outcome = read(Format::nginx, source, reader());
  ASSERT_TRUE(std::holds_alternative<Problems>(outcome));
  EXPECT_THAT(std::get<Problems>(outcome).front().message,
              testing::HasSubstr("is not one line of printable text"));
}

}  // namespace
}  // namespace clockwise::importer
