// Laws of the scanners, on generated heads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "http/rewrite.h"
#include "unit/http/splits.h"

namespace clockwise::http {
namespace {

using test::scan_in_pieces;
using test::summary;

using Texts = std::vector<std::string>;

const Texts kGoodStarts = {"GET /a?b=c HTTP/1.1", "POST http://o.example:81/p HTTP/1.1",
                           "OPTIONS * HTTP/1.1",  "PUT /%41 HTTP/1.0",
                           "GET / HTTP/1.1",      "GET http://o.example?q HTTP/1.3"};
const Texts kBadStarts = {"GET /a  HTTP/1.1", "G( / HTTP/1.1", "GET a HTTP/1.1"};
const Texts kGoodLines = {"Connection: close, X-A",
                          "Connection: keep-alive",
                          "X-A: 1",
                          "X-Empty:",
                          "X-Tab: a\tb",
                          "TE: trailers",
                          "Upgrade: h2c",
                          "Via: 1.1 clockwise",
                          "X-Forwarded-For: 198.51.100.1",
                          "X-Forwarded-Proto: https",
                          "Forwarded: for=a",
                          "X-Request-Id: abc",
                          "Accept: application/json",
                          "X-Long: " + std::string(70, 'y'),
                          "Cookie: a=b; c=\"d\""};
const Texts kOnceLines = {"Content-Length: 12", "Transfer-Encoding: chunked", "Max-Forwards: 4",
                          "Expect: 100-continue", "Host: [::1]:80"};
const Texts kBadLines = {"X-Cr: a\rb", "X-B : c", "X-C", " folded", "Host: a b"};

Texts together(Texts all, const Texts& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

rc::Gen<std::string> head_of(const Texts& starts, const Texts& lines) {
  return rc::gen::apply(
      [](const std::string& start, const Texts& fields, const std::string& once) {
        std::string text = start + "\r\nHost: h.example\r\n";
        for (const std::string& field : fields) text += field + "\r\n";
        return text + once + "\r\n\r\n";
      },
      rc::gen::elementOf(starts), rc::gen::container<Texts>(rc::gen::elementOf(lines)),
      rc::gen::elementOf(kOnceLines));
}

// Good and bad ones, so that every kind of answer is drawn often.
rc::Gen<std::string> any_head() {
  return head_of(together(kGoodStarts, kBadStarts),
                 together(together(kGoodLines, kOnceLines), kBadLines));
}

RequestContext context() {
  RequestContext context;
  context.client_ip = "192.0.2.1";
  context.request_id = "made-here";
  context.fallback_host = "fallback";
  return context;
}

RC_GTEST_PROP(RequestHeadLaw, CutsDoNotMatter, ()) {
  const std::string input = *any_head();
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0;;) {
    at += *rc::gen::inRange<std::size_t>(1, 40);
    if (at >= input.size()) break;
    cuts.push_back(at);
  }
  RequestHead whole;
  std::size_t scanned = 0;
  const Progress progress = scan_request(input, {}, whole, scanned);
  RequestHead cut;
  RC_ASSERT(scan_in_pieces(input, cuts, [&](std::string_view octets, std::size_t& seen) {
              return scan_request(octets, {}, cut, seen);
            }) == progress);
  RC_ASSERT(summary(input, progress, cut) == summary(input, progress, whole));
}

RC_GTEST_PROP(RequestHeadLaw, WhatIsSentReadsAsTheSameRequest, ()) {
  const std::string input = *head_of(kGoodStarts, kGoodLines);
  RequestHead head;
  std::size_t scanned = 0;
  RC_PRE(scan_request(input, {}, head, scanned) == Progress::complete);
  Gather gather;
  rewrite_request(input, head, context(), gather);
  std::string sent;
  for (const std::string_view slice : gather.slices()) sent.append(slice);
  RequestHead again;
  RC_ASSERT(scan_request(sent, {}, again, scanned) == Progress::complete);
  RC_ASSERT(again.size == sent.size());
  RC_ASSERT(again.method == head.method);
  RC_ASSERT(again.uri == head.uri);
  RC_ASSERT(again.authority == head.authority);
  RC_ASSERT(again.body.kind == head.body.kind);
  RC_ASSERT(again.body.length == head.body.length);
}

// A quadratic scan of these would take minutes.
TEST(RequestHeadLaw, DripsCostLinearTime) {
  constexpr HeadLimits kLimits{.size = 1U << 20, .fields = 1U << 20};
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\n";
  std::string short_lines = start;
  while (short_lines.size() < 300'000) short_lines += "A:\r\n";
  for (const std::string& input :
       {"GET /" + std::string(300'000, 'a') + " HTTP/1.1\r\nHost: h\r\n",
        start + "A: " + std::string(300'000, 'a') + "\r\n", short_lines}) {
    RequestHead head;
    std::size_t scanned = 0;
    const std::string whole = input + "\r\n";
    for (std::size_t size = 1; size < whole.size(); ++size) {
      ASSERT_EQ(scan_request({whole.data(), size}, kLimits, head, scanned), Progress::incomplete);
    }
    ASSERT_EQ(scan_request(whole, kLimits, head, scanned), Progress::complete);
  }
}

}  // namespace
}  // namespace clockwise::http
