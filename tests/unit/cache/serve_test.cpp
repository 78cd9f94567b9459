#include "cache/serve.h"

#include <gtest/gtest.h>

#include <string>

#include "http/date.h"
#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::Caller;
using test::Request;

// --- what is asked ------------------------------------------------------------------------------

std::string flags(const Wish& wish) {
  std::string out;
  const auto add = [&](bool is, const char* name) {
    if (is) out.append(name).append(" ");
  };
  add(wish.control, "control");
  add(wish.authorization, "authorization");
  add(wish.if_none_match, "if_none_match");
  add(wish.if_modified_since, "if_modified_since");
  add(wish.range, "range");
  add(wish.if_range, "if_range");
  add(wish.for_origin, "for_origin");
  return out;
}

TEST(Wish, IsFoundInAnyCase) {
  const struct {
    const char* lines;
    const char* expected;
  } rows[] = {
      {"", ""},
      {"Cache-Control: no-cache", "control "},
      {"cache-control:", "control "},
      {"AUTHORIZATION: Basic eA==", "authorization "},
      {"If-None-Match: *", "if_none_match "},
      {"if-modified-SINCE: x", "if_modified_since "},
      {"Range: bytes=0-", "range "},
      {"If-Range: \"x\"", "if_range "},
      {"If-Match: \"x\"", "for_origin "},
      {"If-Unmodified-Since: x", "for_origin "},
      {"Range: a\nIf-Range: b\nCache-Control: c\nX: d", "control range if_range "},
      // Of the same length.
      {"Ranga: x\nRange-: x\nAngel: x", ""},
      {"If-Ranga: x\nIf-Matcg: x\nIf_Range: x\nIf_Match: x", ""},
      {"Cache-Contral: x\nAuthorisation: x\nIf-None-Catch: x\nCache_Control: x", ""},
      {"If-Modified-Sinse: x", ""},
      {"If-Unmodified-Sinse: x", ""},
      {"Pragma: no-cache", ""},
  };
  for (const auto& row : rows) {
    const Request request(row.lines);
    EXPECT_EQ(flags(wish_of(request.octets, request.head.fields)), row.expected) << row.lines;
  }
}

// --- what is given ------------------------------------------------------------------------------

constexpr std::int64_t kNow = 1'000'000'000;
std::string at(std::int64_t seconds) { return std::string(http::Date(seconds).text()); }

class Serve : public testing::Test {
 protected:
  Served of(const std::string& lines, std::uint64_t length = 10) {
    const Request request(lines);
    return serve(*object_, http::Method::get, wish_of(request.octets, request.head.fields),
                 request.octets, request.head.fields, length, kNow);
  }
  void store(const std::string& head, std::uint16_t status = 200) {
    const auto fill = caller_.lead("http://a/x");
    Draft draft;
    draft.status = status;
    draft.head = head;
    draft.length = 10;
    ASSERT_TRUE(caller_.store.begin(*fill, draft, caller_.now));
    caller_.bring(*fill, {.body = "0123456789"});
    object_ = fill->object();
  }

  Caller caller_;
  ObjectRef object_;
};

struct Given {
  std::string lines;
  unsigned status;
  std::vector<ByteRange> parts = {};
};

TEST_F(Serve, WholeInPartOrNotAtAll) {
  store("ETag: \"1\"\r\nLast-Modified: " + at(kNow - 100) + "\r\nDate: " + at(kNow) + "\r\n");
  const Given rows[] = {
      {"", 200},
      {"If-None-Match: \"1\"", 304},
      {"If-None-Match: W/\"1\"", 304},
      {"If-None-Match: \"2\"", 200},
      {"If-None-Match: \"2\"\nIf-None-Match: \"1\"", 304},
      {"If-Modified-Since: " + at(kNow - 100), 304},
      {"If-Modified-Since: " + at(kNow - 101), 200},
      {"If-None-Match: \"2\"\nIf-Modified-Since: " + at(kNow), 200},
      {"Range: bytes=2-4", 206, {{2, 4}}},
      {"Range: bytes=8-", 206, {{8, 9}}},
      {"Range: bytes=-3", 206, {{7, 9}}},
      {"Range: bytes=0-1,8-9", 206, {{0, 1}, {8, 9}}},
      {"Range: bytes=10-", 416},
      {"Range: lines=1-2", 200},
      {"Range: bytes=1-2\nRange: bytes=3-4", 200},
      // The condition goes first (RFC 9110 13.2.2).
      {"Range: bytes=2-4\nIf-None-Match: \"1\"", 304},
      {"Range: bytes=2-4\nIf-None-Match: \"2\"", 206, {{2, 4}}},
      {"Range: bytes=10-\nIf-None-Match: \"1\"", 304},
      {"Range: bytes=2-4\nIf-Range: \"1\"", 206, {{2, 4}}},
      {"Range: bytes=2-4\nIf-Range: \"2\"", 200},
      {"Range: bytes=10-\nIf-Range: \"2\"", 200},
      {"Range: bytes=2-4\nIf-Range: " + at(kNow - 100), 206, {{2, 4}}},
      {"If-Range: \"1\"", 200},
  };
  for (const Given& row : rows) {
    const Served served = of(row.lines);
    EXPECT_EQ(served.status, row.status) << row.lines;
    EXPECT_EQ(served.parts, row.parts) << row.lines;
  }
}

TEST_F(Serve, NoPartOfWhatIsNotKnownWhole) {
  store("ETag: \"1\"\r\n");
  EXPECT_EQ(of("Range: bytes=2-4", Fill::kUnknown).status, 200);
  EXPECT_EQ(of("Range: bytes=2-4\nIf-None-Match: \"1\"", Fill::kUnknown).status, 304);
  EXPECT_EQ(of("Range: bytes=0-", 0).status, 416);
}

TEST_F(Serve, NothingSelectsFromWhatIsNoSuccess) {
  constexpr std::uint16_t kStatuses[] = {301, 404, 410, 503};
  for (const std::uint16_t status : kStatuses) {
    store("ETag: \"1\"\r\n", status);
    for (const char* lines : {"If-None-Match: \"1\"", "Range: bytes=2-4", ""})
      EXPECT_EQ(of(lines).status, status) << lines;
  }
}

TEST_F(Serve, WithoutValidatorsOnlyTheDateTells) {
  store("Date: " + at(kNow - 50) + "\r\n");
  EXPECT_EQ(of("If-None-Match: \"1\"").status, 200);
  EXPECT_EQ(of("If-None-Match: *").status, 304);
  EXPECT_EQ(of("If-Modified-Since: " + at(kNow - 50)).status, 304);
  EXPECT_EQ(of("If-Modified-Since: " + at(kNow - 51)).status, 200);
  EXPECT_EQ(of("Range: bytes=2-4").status, 206);
  EXPECT_EQ(of("Range: bytes=2-4\nIf-Range: " + at(kNow - 50)).status, 200);
}

TEST(ServedHead, LeavesOutWhatDescribesAContentThatIsNotSent) {
  const std::string head =
      "Content-Type: a/b\r\nETag: \"1\"\r\ncontent-encoding: gzip\r\nContent-Language: de\r\n"
      "Content-Location: /y\r\nContent-Range: bytes 0-1/2\r\nVary: A\r\nContent-Typ: x\r\n";
  std::string all = "before ", some = "before ";
  append_head(head, true, all);
  append_head(head, false, some);
  EXPECT_EQ(all, "before " + head);
  EXPECT_EQ(some, "before ETag: \"1\"\r\nContent-Location: /y\r\nVary: A\r\nContent-Typ: x\r\n");
  append_head("", false, some);
  EXPECT_TRUE(some.ends_with("Content-Typ: x\r\n"));
}

}  // namespace
}  // namespace clockwise::cache
