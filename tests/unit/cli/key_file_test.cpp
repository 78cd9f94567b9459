// `plan --keys` over whole files.
#include "cli/key_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/pools.h"

namespace clockwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using upstream::KeyCount;
using upstream::test::BuiltPool;
using upstream::test::server;

config::Pool pool_of(std::size_t servers, const std::string& key = "{uri}") {
  config::Pool pool = upstream::test::pool({});
  for (std::size_t i = 0; i < servers; ++i) pool.servers.push_back(server(fmt::format("s{}", i)));
  pool.ring.key = key;
  return pool;
}

// What a change counts of a file, and what was said on stderr.
struct Counted {
  KeyCount keys;
  std::string said;
};

class KeyFile : public testing::Test {
 protected:
  ~KeyFile() override { std::filesystem::remove(path_); }

  Counted count(const std::string& text, const BuiltPool& before, const BuiltPool& after) {
    std::ofstream(path_, std::ios::binary) << text;
    std::vector<CountedChange> changes{{before, after}};
    testing::internal::CaptureStderr();
    const Result<void> done = count_keys(path_, changes);
    Counted counted{std::move(changes[0].keys), testing::internal::GetCapturedStderr()};
    EXPECT_TRUE(done);
    return counted;
  }

  // Which of the keys change their owner, one look-up at a time.
  static std::uint64_t moved(const std::vector<std::string>& keys, const BuiltPool& before,
                             const BuiltPool& after) {
    std::uint64_t count = 0;
    for (const std::string& key : keys) {
      const auto& from = before.pool.servers[before.ring->owner(before.ring->hash(key))].name;
      const auto& to = after.pool.servers[after.ring->owner(after.ring->hash(key))].name;
      count += from != to ? 1 : 0;
    }
    return count;
  }

  const BuiltPool three_{pool_of(3)}, four_{pool_of(4)};
  const std::string path_ =
      testing::TempDir() +
      fmt::format("clockwise-keys-{}",
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(KeyFile, CountsAPlainListByteForByte) {
  std::string text;
  std::vector<std::string> keys;
  for (int i = 0; i < 50'000; ++i) {  // more than one block of the reader
    keys.push_back(fmt::format("/item/{}\r", i));
    text += keys.back() + "\n";
  }
  keys.emplace_back("the last line lacks its end");
  const Counted counted = count(text + "\n" + keys.back(), three_, four_);
  EXPECT_EQ(counted.keys.total, keys.size());
  EXPECT_EQ(counted.keys.moved, moved(keys, three_, four_));
  EXPECT_EQ(counted.keys.moves.size(), 3u);
  EXPECT_THAT(counted.said, IsEmpty());
}

TEST_F(KeyFile, MakesTheKeysOfALogByTheTemplateOfThePool) {
  const BuiltPool before{pool_of(3, "{host}{path}")}, after{pool_of(4, "{host}{path}")};
  std::string text;
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format("{{\"request_uri\":\"/p/{}?q={}\",\"host\":\"h\"}}\n", i, i);
    keys.push_back(fmt::format("h/p/{}", i));
  }
  const Counted counted = count(text, before, after);
  EXPECT_EQ(counted.keys.total, 1000u);
  EXPECT_EQ(counted.keys.moved, moved(keys, before, after));
  EXPECT_THAT(counted.said, IsEmpty());
}

TEST_F(KeyFile, ComparesTheKeysOfBothTemplatesWhereTheyDiffer) {
  const BuiltPool before{pool_of(3)}, after{pool_of(3, "{path}")};
  const std::string log = "h - - [d] \"GET /a?x HTTP/1.1\" 200 7\n";
  const auto owner = [](const BuiltPool& pool, std::string_view key) {
    return pool.pool.servers[pool.ring->owner(pool.ring->hash(key))].name;
  };
  const std::uint64_t differs = owner(before, "/a?x") != owner(after, "/a") ? 1 : 0;
  EXPECT_EQ(count(log, before, after).keys.moved, differs);
  EXPECT_EQ(count("h - - [d] \"GET /a HTTP/1.1\" 200 7\n", before, after).keys.moved, 0u);
}

TEST_F(KeyFile, SaysHowManyLinesHaveNoRequest) {
  const Counted counted = count(
      "h - - [d] \"GET /a HTTP/1.1\" 200 7\nh - - [d] \"-\" 400 0\nh - - [d] \"\\x16\" 400 0\n",
      three_, four_);
  EXPECT_EQ(counted.keys.total, 1u);
  EXPECT_THAT(counted.said,
              HasSubstr("2 of 3 lines have no request and are left out, first line 2"));
}

TEST_F(KeyFile, ReadsALogThatStartsInTheMiddleOfALine) {
  std::string text = "P/1.1\" 200 7 \"-\" \"curl\"\n\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("h - - [d] \"GET /{} HTTP/1.1\" 200 7\n", i);
  const Counted counted = count(text, three_, four_);
  EXPECT_EQ(counted.keys.total, 100u);
  EXPECT_THAT(counted.said,
              HasSubstr(" is read as a combined access log: 1 of 102 lines have no request and are "
                        "left out, first line 1\n"));
}

TEST_F(KeyFile, MakesKeysOfTheVirtualHostAndTheClient) {
  const std::string key = "{scheme}://{host}/{client_ip}";
  const BuiltPool before{pool_of(3, key)}, after{pool_of(4, key)};
  std::string text;
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) {
    text += fmt::format("www{}.example:443 10.0.0.{} - - [d] \"GET /a HTTP/1.1\" 200 7\n", i, i);
    keys.push_back(fmt::format("https://www{}.example/10.0.0.{}", i, i));
  }
  const Counted counted = count(text, before, after);
  EXPECT_EQ(counted.keys.moved, moved(keys, before, after));
  EXPECT_THAT(counted.said, IsEmpty());
}

TEST_F(KeyFile, SaysWhatTheTemplateMissesInTheLog) {
  const BuiltPool before{pool_of(3, "{header:accept}{uri}")},
      after{pool_of(4, "{header:accept}{uri}")};
  const Counted counted = count(
      "h - - [d] \"GET /a HTTP/1.1\" 200 7\nh - - [d] \"GET /b HTTP/1.1\" 200 7\n", before, after);
  EXPECT_EQ(counted.keys.total, 2u);
  EXPECT_THAT(counted.said,
              HasSubstr("pool pages: 2 of 2 keys are counted without {header:accept}"));
}

TEST_F(KeyFile, CountsNothingOfAnEmptyFileOrWithoutAnOwner) {
  EXPECT_EQ(count("", three_, four_).keys.total, 0u);
  const BuiltPool none{server("a", 0)};
  const Counted counted = count("/a\n/b\n", none, four_);
  EXPECT_EQ(counted.keys.total, 2u);
  EXPECT_EQ(counted.keys.moved, 0u);
}

TEST_F(KeyFile, FailsWithTheReasonOfTheSystem) {
  std::vector<CountedChange> changes;
  const Result<void> done = count_keys("/nonexistent/keys", changes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "No such file or directory");
}

}  // namespace
}  // namespace clockwise::cli
