// What caches of all sorts say about where an answer came from.
#include "http/cache_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clockwise::http {
namespace {

CacheAnswer answer_of(const std::string& lines) {
  const std::string octets = "HTTP/1.1 200 OK\r\n" + lines + "Content-Length: 0\r\n\r\n";
  ResponseHead head;
  std::size_t scanned = 0;
  EXPECT_EQ(scan_response(octets, {}, Method::get, head, scanned), Progress::complete) << lines;
  return cache_answer(octets, head.fields);
}

TEST(CacheAnswer, HitsAreAnswersThatTheOriginWasNotAskedFor) {
  const std::vector<std::string> hits = {
      "Cache-Status: nearby; hit\r\n",
      "Cache-Status: \"a, b; fwd=miss\";hit;ttl=376\r\n",
      "cache-status: c; ttl=1; hit=?1\r\n",
      "Cache-Status: origin-shield; fwd=uri-miss, edge; hit\r\n",
      "Cache-Status: a; fwd=miss\r\nCache-Status: b; hit\r\n",
      "X-Cache: HIT\r\n",
      "x-cache: hit from cache-1\r\n",
      "X-Cache: Hit from cloudfront\r\n",
      "X-Cache: TCP_MEM_HIT:NONE\r\n",
      "X-Cache: MISS, HIT\r\n",
      "X-Cache-Status: HIT\r\n",
      "X-Cache-Status: STALE\r\n",
      "X-Cache-Status: UPDATING\r\n",
      "Age: 1\r\n",
      "Age: 007\r\n",
  };
  for (const std::string& lines : hits) EXPECT_EQ(answer_of(lines), CacheAnswer::hit) << lines;
}

TEST(CacheAnswer, MissesCostTheOriginARequest) {
  const std::vector<std::string> misses = {
      "Cache-Status: a; fwd=uri-miss; stored\r\n",
      "Cache-Status: a; fwd=stale; fwd-status=304\r\n",
      "Cache-Status: shield; hit, edge; fwd=bypass\r\n",
      "X-Cache: MISS\r\n",
      "X-Cache: miss from squid-3\r\n",
      "X-Cache: HIT, MISS\r\n",
      "X-Cache: RefreshHit from cloudfront\r\n",
      "X-Cache: TCP_REFRESH_UNMODIFIED\r\n",
      "X-Cache-Status: BYPASS\r\n",
      "X-Cache-Status: EXPIRED\r\n",
      "X-Cache-Status: REVALIDATED\r\n",
      "Age: 0\r\n",
  };
  for (const std::string& lines : misses) EXPECT_EQ(answer_of(lines), CacheAnswer::miss) << lines;
}

TEST(CacheAnswer, IsUnknownWhereNobodyTells) {
  const std::vector<std::string> silent = {
      "",
      "Cache-Status: a; ttl=30\r\n",
      "Cache-Status: \"a; hit\"\r\n",
      "Cache-Status: hit\r\n",
      "Cache-Status: a; detail=\"; hit\"\r\n",
      "Cache-Status: a; detail=\"\\\"; hit\"; hit=?0\r\n",
      "Cache-Status: \"hit\r\n",
      "Cache-Status:\r\n",
      "X-Cache: Error from cloudfront; hit\r\n",
      "X-Cache: -\r\n",
      "X-Cache: \r\n",
      "Age: -1\r\n",
      "Age: 1.5\r\n",
      "Age: \r\n",
      "X-Age: 5\r\n",
      "X-Cache-Hits: 5\r\n",
  };
  for (const std::string& lines : silent)
    EXPECT_EQ(answer_of(lines), CacheAnswer::unknown) << lines;
}

TEST(CacheAnswer, TheFieldThatTellsMostDecides) {
  EXPECT_EQ(answer_of("Age: 5\r\nX-Cache: MISS\r\n"), CacheAnswer::miss);
  EXPECT_EQ(answer_of("Age: 0\r\nX-Cache: HIT\r\n"), CacheAnswer::hit);
  EXPECT_EQ(answer_of("X-Cache: HIT\r\nX-Cache-Status: MISS\r\n"), CacheAnswer::miss);
  EXPECT_EQ(answer_of("X-Cache: HIT\r\nCache-Status: a; fwd=miss\r\n"), CacheAnswer::miss);
  EXPECT_EQ(answer_of("Age: 9\r\nX-Cache: -\r\nCache-Status: a\r\n"), CacheAnswer::hit);
}

}  // namespace
}  // namespace clockwise::http
