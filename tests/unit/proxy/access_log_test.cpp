#include "proxy/access_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "proxy/access_line.h"

namespace clockwise::proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

AccessRecord sample_record() {
  AccessRecord record;
  record.time = std::chrono::system_clock::time_point{1'700'000'000'123ms};
  record.client_ip = "192.0.2.7";
  record.method = "GET";
  record.target = "/a?b=c";
  record.host = "example.com";
  record.status = 200;
  record.response_bytes = 42;
  record.duration = 1'234'567ns;
  record.listener = "web";
  record.pool = "pages";
  record.server = "cache-1";
  record.attempts = 1;
  record.user_agent = "curl/8";
  return record;
}

std::string line_of(const AccessRecord& record, config::LogFormat format) {
  LineFormat lines{format};
  std::string out;
  lines.append(record, out);
  return out;
}

TEST(AccessLine, JsonHasEveryField) {
  const std::string line = line_of(sample_record(), config::LogFormat::json);
  const auto object = boost::json::parse(line).as_object();
  EXPECT_EQ(object.at("time"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(object.at("client"), "192.0.2.7");
  EXPECT_EQ(object.at("target"), "/a?b=c");
  EXPECT_EQ(object.at("status").to_number<int>(), 200);
  EXPECT_EQ(object.at("response_bytes").to_number<int>(), 42);
  EXPECT_DOUBLE_EQ(object.at("duration_seconds").to_number<double>(), 0.001234);
  EXPECT_EQ(object.at("server"), "cache-1");
  EXPECT_EQ(object.at("protocol"), "HTTP/1.1");
}

TEST(AccessLine, CombinedIsWhatLogReadersKnow) {
  EXPECT_EQ(line_of(sample_record(), config::LogFormat::combined),
            "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET /a?b=c HTTP/1.1\" 200 42 \"-\" "
            "\"curl/8\"\n");
}

struct Hostile {
  const char* name;
  std::string value;
};

class HostileField : public testing::TestWithParam<Hostile> {};

TEST_P(HostileField, StaysOneLineOfValidJson) {
  AccessRecord record = sample_record();
  record.user_agent = GetParam().value;
  const std::string line = line_of(record, config::LogFormat::json);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  boost::system::error_code failed;
  boost::json::parse(line, failed);  // also refuses invalid UTF-8
  EXPECT_FALSE(failed) << line;
  for (const std::string_view acts : {"\xC2\x9B", "\xE2\x80\xAE", "\x1b"})
    EXPECT_EQ(line.find(acts), std::string::npos) << line;
}

TEST_P(HostileField, StaysOneLineOfPlainText) {
  AccessRecord record = sample_record();
  record.user_agent = GetParam().value;
  const std::string line = line_of(record, config::LogFormat::combined);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(std::count(line.begin(), line.end(), '"'), 6);
  EXPECT_TRUE(
      std::all_of(line.begin(), line.end() - 1, [](char c) { return c >= ' ' && c <= '~'; }));
}

INSTANTIATE_TEST_SUITE_P(
    AccessLine, HostileField,
    testing::Values(Hostile{"line_break", "a\r\nGET /forged"}, Hostile{"quote", "a\" \"b"},
                    Hostile{"backslash", "a\\"}, Hostile{"nul", std::string("a\0b", 3)},
                    Hostile{"escape", "\x1b[31m"}, Hostile{"lone_lead", "\xC3"},
                    Hostile{"overlong", "\xC0\xAF"}, Hostile{"surrogate", "\xED\xA0\x80"},
                    Hostile{"above_unicode", "\xF4\x90\x80\x80"}, Hostile{"lone_tail", "\x80z"},
                    Hostile{"c1_control",
                            "\xC2\x9B"
                            "31m"},
                    Hostile{"turns_direction",
                            "\xE2\x80\xAE"
                            "x"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(AccessLine, KeepsValidUnicode) {
  AccessRecord record = sample_record();
  record.referer = "caf\xC3\xA9 \xF0\x9F\x95\x91";
  const auto object = boost::json::parse(line_of(record, config::LogFormat::json)).as_object();
  EXPECT_EQ(object.at("referer"), "caf\xC3\xA9 \xF0\x9F\x95\x91");
}

class AccessLogFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("clockwise-log-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "access.log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<AccessLog> open(double sample = 1.0) {
    return AccessLog::open({.file = path_, .format = config::LogFormat::json, .sample = sample},
                           cells_)
        .value();
  }
  static std::size_t lines(const std::filesystem::path& path) {
    std::ifstream file(path);
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }
  static bool wait_for(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::uint64_t dropped() const {
    return cells_->sum([](const auto& c) { return c.log_dropped.get(); });
  }

  std::filesystem::path folder_, path_;
  std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> cells_ =
      std::make_shared<metrics::PerWorker<metrics::WorkerCells>>(2);
};

TEST_F(AccessLogFile, WritesSoonWithoutBeingStopped) {
  const auto log = open();
  log->append(0, sample_record());
  log->append(1, sample_record());
  EXPECT_TRUE(wait_for([&] { return lines(path_) == 2; }));
}

TEST_F(AccessLogFile, WritesTheRestWhenItEnds) {
  auto log = open();
  for (int i = 0; i < 100; ++i) log->append(0, sample_record());
  log.reset();
  EXPECT_EQ(lines(path_) + dropped(), 100u);
  EXPECT_EQ(dropped(), 0u);
}

TEST_F(AccessLogFile, FollowsARotation) {
  auto log = open();
  log->append(0, sample_record());
  ASSERT_TRUE(wait_for([&] { return lines(path_) == 1; }));
  std::filesystem::rename(path_, folder_ / "access.log.1");
  log->reopen();
  ASSERT_TRUE(wait_for([&] { return std::filesystem::exists(path_); }));
  log->append(0, sample_record());
  log.reset();
  EXPECT_EQ(lines(path_), 1u);
  EXPECT_EQ(lines(folder_ / "access.log.1"), 1u);
}

TEST_F(AccessLogFile, ASinkThatIsStuckLosesCountedLinesAndHoldsNobodyUp) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // never read from
  auto log = open();
  for (int i = 0; i < 5'000; ++i) log->append(0, sample_record());
  EXPECT_GT(dropped(), 0u);
  log.reset();  // returns although nobody reads
  ::close(reader);
}

TEST_F(AccessLogFile, SamplesTheShareItWasTold) {
  const auto log = open(0.1);
  int taken = 0;
  for (int i = 0; i < 100'000; ++i) taken += log->sampled(0) ? 1 : 0;
  EXPECT_NEAR(taken, 10'000, 500);
}

TEST_F(AccessLogFile, AFileThatCannotBeOpenedIsNamed) {
  const auto log = AccessLog::open({.file = folder_ / "absent" / "access.log"}, cells_);
  ASSERT_FALSE(log.has_value());
  EXPECT_THAT(log.error().message, HasSubstr("absent/access.log: No such file or directory"));
}

}  // namespace
}  // namespace clockwise::proxy
