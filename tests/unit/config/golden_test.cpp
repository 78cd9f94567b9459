// The files of tests/golden/config: good ones load, bad ones are refused for the reasons that their
// first lines give (`# expect LINE:COLUMN TEXT`), at that place, and for no other reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/load.h"

namespace clockwise::config {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(CLOCKWISE_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

LoadResult load_file(const fs::path& path) {
  return load(path.string(), real_files(), real_environment());
}

struct Expected {
  std::string place;  // LINE:COLUMN
  std::string text;
};

std::vector<Expected> expectations(const fs::path& path) {
  std::vector<Expected> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && line.starts_with("# ");) {
    std::istringstream words(line);
    std::string hash;
    std::string verb;
    Expected expected;
    words >> hash >> verb >> expected.place >> std::ws;
    if (verb != "expect") continue;
    std::getline(words, expected.text);
    if (expected.text.ends_with('\r')) expected.text.pop_back();
    out.push_back(expected);
  }
  return out;
}

class Bad : public testing::TestWithParam<fs::path> {};
class Good : public testing::TestWithParam<fs::path> {};

TEST_P(Bad, IsRefusedAtItsPlaceForItsReason) {
  const LoadResult result = load_file(GetParam());
  const auto* failure = std::get_if<Failure>(&result);
  ASSERT_NE(failure, nullptr) << "is accepted";
  const std::vector<Expected> expected = expectations(GetParam());
  std::string all;
  for (const Problem& problem : failure->problems) all += problem.text() + "\n";
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(failure->problems.size(), expected.size()) << all;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Position& at = failure->problems[i].position;
    EXPECT_EQ(std::to_string(at.line) + ":" + std::to_string(at.column), expected[i].place) << all;
    EXPECT_THAT(failure->problems[i].message, testing::HasSubstr(expected[i].text));
    EXPECT_EQ(at.file, GetParam().string());
    EXPECT_THAT(failure->problems[i].source, testing::HasSubstr("^"));
  }
}

TEST_P(Good, Loads) {
  const LoadResult result = load_file(GetParam());
  const auto* failure = std::get_if<Failure>(&result);
  EXPECT_EQ(failure, nullptr) << (failure == nullptr ? "" : failure->problems[0].text());
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Config, Bad, testing::ValuesIn(files_of("tests/golden/config/bad")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Config, Good, testing::ValuesIn(files_of("tests/golden/config/good")),
                         test_name);

}  // namespace
}  // namespace clockwise::config
