#include "cache/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "http/date.h"

namespace clockwise::cache {
namespace {

using testing::ElementsAre;

// All times are counted from here.
constexpr std::int64_t kNow = 1'000'000'000;

std::string date(std::int64_t from_now) { return std::string(http::Date(kNow + from_now).text()); }

struct Case {
  std::string answer;  // head, with \n for CRLF and {±N} for a date
  std::string request = "GET / HTTP/1.1\nHost: a\n\n";
};

std::string wire(std::string text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      out += "\r\n";
    } else if (text[i] == '{') {
      const std::size_t end = text.find('}', i);
      out += date(std::stoll(text.substr(i + 1, end - i - 1)));
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

class Policy : public testing::Test {
 protected:
  Verdict judged(const Case& c) {
    const std::string request = wire(c.request), answer = wire(c.answer);
    http::RequestHead asked_head;
    http::ResponseHead head;
    std::size_t scanned = 0;
    EXPECT_EQ(http::scan_request(request, {}, asked_head, scanned), http::Progress::complete)
        << request;
    scanned = 0;
    EXPECT_EQ(http::scan_response(answer, {}, asked_head.method_id, head, scanned),
              http::Progress::complete)
        << answer;
    asked = asked_of(request, asked_head);
    constexpr std::string_view kTargeted[] = {"Clockwise-Cache-Control", "CDN-Cache-Control"};
    return judge(asked, answer_of(answer, head, kTargeted, moments), moments, settings);
  }
  // Nothing: it is stored.
  std::optional<NotStored> refusal(const Case& c) { return judged(c).refused; }
  Seconds fresh_for(const Case& c) {
    const Verdict verdict = judged(c);
    return verdict.refused ? -1 : Seconds{verdict.terms.lifetime} - verdict.terms.initial_age;
  }
  Use use(const Verdict& verdict, Seconds later) {
    return use_of(verdict.terms, asked, (kNow + later) * 1000, settings);
  }

  Settings settings;
  Moments moments{kNow * 1000, kNow * 1000};
  Asked asked;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\n";
std::string ok(const std::string& lines) { return kOk + lines + "\n\n"; }

struct Lifetime {
  const char* lines;
  Seconds expected;  // left when it comes; -1: not stored
};

// RFC 9111 4.2.1 to 4.2.3.
TEST_F(Policy, WhatRemainsOfTheLifetime) {
  const Lifetime rows[] = {
      {"Cache-Control: max-age=100", 100},
      {"Cache-Control: max-age=100, s-maxage=7", 7},
      {"Cache-Control: s-maxage=200\nCache-Control: max-age=0", 200},
      {"Cache-Control: s-maxage=200\nExpires: {-100}", 200},
      {"Cache-Control: max-age=200\nExpires: 0", 200},
      {"Date: {0}\nExpires: {60}", 60},
      {"Date: {+3600}\nExpires: {3700}", 100},  // our clock plays no part
      {"Date: {-100}\nExpires: {60}", 60},      // 160 long, 100 old
      {"Expires: {60}", 60},                    // no Date: when it came
      {"Date: nonsense\nExpires: {60}", 60},
      {"Cache-Control: max-age=100\nAge: 30", 70},
      {"Cache-Control: max-age=100\nAge: 30, 0", 70},
      {"Cache-Control: max-age=100\nAge: 0, 30", 100},
      {"Cache-Control: max-age=100\nAge: 30.5", 100},
      {"Cache-Control: max-age=100\nAge: -1", 100},
      {"Cache-Control: max-age=100\nAge: 30;x=1", 100},
      {"Cache-Control: max-age=100\nDate: {-40}", 60},
      {"Cache-Control: max-age=100\nDate: {-40}\nAge: 50", 50},
      // A guess: a tenth of the age, a day at most (4.2.2).
      {"Date: {0}\nLast-Modified: {-1000}", 100},
      {"Date: {0}\nLast-Modified: {-99999999}", 24 * 3600},
      {"Date: {0}\nLast-Modified: {+1000}", 0},
      {"Date: {0}", -1},
      {"Cache-Control: public", -1},
  };
  for (const Lifetime& row : rows) EXPECT_EQ(fresh_for({ok(row.lines)}), row.expected) << row.lines;
}

TEST_F(Policy, ASlowAnswerIsOlder) {
  moments.requested_ms -= 30'000;
  EXPECT_EQ(fresh_for({ok("Cache-Control: max-age=100\nAge: 10")}), 60);
  EXPECT_EQ(fresh_for({ok("Cache-Control: max-age=100\nDate: {0}")}), 70);
}

TEST_F(Policy, TargetedFieldsRuleAlone) {
  EXPECT_EQ(fresh_for({ok("Cache-Control: no-store\nCDN-Cache-Control: max-age=50")}), 50);
  EXPECT_EQ(refusal({ok("Cache-Control: max-age=50\nCDN-Cache-Control: no-store")}),
            NotStored::no_store);
  EXPECT_EQ(fresh_for({ok("CDN-Cache-Control: max-age=50\nClockwise-Cache-Control: max-age=20")}),
            20);
  EXPECT_EQ(fresh_for({ok("Cache-Control: max-age=9\nCDN-Cache-Control: max-age=\"50\"")}), 9);
  EXPECT_EQ(fresh_for({ok("Expires: {60}\nETag: \"x\"\nCDN-Cache-Control: must-revalidate")}), 0);
}

struct Refused {
  const char* answer;
  std::optional<NotStored> expected;
};

// RFC 9111 section 3.
TEST_F(Policy, WhatIsStored) {
  const Refused rows[] = {
      {"200 OK\nCache-Control: max-age=9, no-store", NotStored::no_store},
      {"200 OK\nCache-Control: max-age=9, private", NotStored::is_private},
      {"200 OK\nCache-Control: max-age=9, private=\"x-a\"", std::nullopt},
      {"200 OK\nCache-Control: max-age=9, no-store, must-understand", std::nullopt},
      {"599 What\nCache-Control: max-age=9, must-understand", NotStored::status},
      {"599 What\nCache-Control: max-age=9", std::nullopt},
      {"299 Own\nCache-Control: max-age=9", std::nullopt},
      {"206 Part\nCache-Control: max-age=9\nContent-Range: bytes 0-0/1", NotStored::status},
      {"304 Not\nCache-Control: max-age=9", NotStored::status},
      {"200 OK\nCache-Control: max-age=9\nVary: a, *", NotStored::vary},
      {"200 OK\nCache-Control: max-age=9\nVary:\nVary: ,*,", NotStored::vary},
      {"200 OK\nCache-Control: max-age=9\nSet-Cookie: a=b", NotStored::set_cookie},
      {"200 OK\nCache-Control: s-maxage=9\nSet-Cookie: a=b", std::nullopt},
      {"200 OK\nCache-Control: max-age=9, public\nSet-Cookie: a=b", std::nullopt},
      {"200 OK\nETag: \"x\"\nCache-Control: no-cache", std::nullopt},
      {"200 OK\nCache-Control: no-cache", NotStored::lifetime},
      {"200 OK\nCache-Control: max-age=0", NotStored::lifetime},
      {"200 OK\nETag: \"x\"\nCache-Control: max-age=0", std::nullopt},
      {"302 Found\nLast-Modified: {-1000}", NotStored::lifetime},
      {"503 No\nLast-Modified: {-1000}", NotStored::lifetime},
      {"503 No\nCache-Control: max-age=9", std::nullopt},
  };
  for (const Refused& row : rows)
    EXPECT_EQ(refusal({std::string("HTTP/1.1 ") + row.answer + "\n\n"}), row.expected)
        << row.answer;
}

TEST_F(Policy, HeuristicStatuses) {
  for (const int status : {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
    EXPECT_FALSE(refusal({"HTTP/1.1 " + std::to_string(status) + " X\nLast-Modified: {-1000}\n\n"}))
        << status;
  for (const int status : {201, 202, 302, 307, 403, 502, 503, 504, 499})
    EXPECT_TRUE(refusal({"HTTP/1.1 " + std::to_string(status) + " X\nLast-Modified: {-1000}\n\n"}))
        << status;
  settings.heuristic = std::nullopt;
  EXPECT_EQ(fresh_for({ok("Last-Modified: {-1000}")}), 0);
}

TEST_F(Policy, DefaultsAreForAnswersThatSayNothing) {
  settings.default_ttl = 30;
  settings.negative_ttl = 5;
  EXPECT_EQ(fresh_for({ok("X: y")}), 30);
  EXPECT_EQ(fresh_for({ok("Cache-Control: max-age=1")}), 1);
  EXPECT_EQ(fresh_for({"HTTP/1.1 404 No\n\n"}), 5);
  EXPECT_EQ(fresh_for({"HTTP/1.1 503 No\n\n"}), -1);
}

// 3.5.
TEST_F(Policy, AnswersToCredentials) {
  const std::string request = "GET / HTTP/1.1\nHost: a\nAuthorization: x\n\n";
  EXPECT_EQ(refusal({ok("Cache-Control: max-age=9"), request}), NotStored::authorization);
  for (const char* allowed : {"public, max-age=9", "must-revalidate, max-age=9", "s-maxage=9"})
    EXPECT_EQ(refusal({ok(std::string("Cache-Control: ") + allowed), request}), std::nullopt);
}

TEST_F(Policy, WhatIsAsked) {
  const std::string fresh = ok("Cache-Control: max-age=9");
  EXPECT_EQ(refusal({fresh, "POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n"}), NotStored::method);
  EXPECT_EQ(refusal({fresh, "GET / HTTP/1.1\nHost: a\nContent-Length: 1\n\n"}), NotStored::method);
  EXPECT_EQ(refusal({fresh, "GET / HTTP/1.1\nHost: a\nCache-Control: no-store\n\n"}),
            NotStored::request);
  EXPECT_EQ(refusal({fresh, "GET / HTTP/1.1\nHost: a\nContent-Length: 0\n\n"}), std::nullopt);
}

TEST_F(Policy, CookiesMayBeStripped) {
  settings.set_cookie = SetCookie::strip;
  EXPECT_THAT(judged({ok("Cache-Control: max-age=9\nSet-Cookie: a=b")}).dropped_fields,
              ElementsAre("set-cookie"));
  settings.set_cookie = SetCookie::store;
  EXPECT_THAT(judged({ok("Cache-Control: max-age=9\nSet-Cookie: a=b")}).dropped_fields,
              ElementsAre());
}

// RFC 5861.
TEST_F(Policy, StaleAnswers) {
  const Verdict both =
      judged({ok("Cache-Control: max-age=10, stale-while-revalidate=20, stale-if-error=40")});
  EXPECT_EQ(use(both, 9), Use::fresh);
  EXPECT_EQ(use(both, 10), Use::stale);
  EXPECT_EQ(use(both, 29), Use::stale);
  EXPECT_EQ(use(both, 30), Use::validate);
  EXPECT_TRUE(may_stand_in(both.terms, (kNow + 49) * 1000));
  EXPECT_FALSE(may_stand_in(both.terms, (kNow + 50) * 1000));
  EXPECT_EQ(current_age(both.terms, (kNow + 25) * 1000), 25);
  EXPECT_EQ(current_age(both.terms, (kNow - 25) * 1000), 0) << "the clock went back";
}

// Stale when it comes, with nothing to validate it by: kept where the origin says what it may be
// for.
TEST_F(Policy, WhatIsStaleAtOnceIsKeptForErrors) {
  settings.stale_if_error = 1000;
  EXPECT_TRUE(judged({ok("Cache-Control: max-age=0")}).refused);
  EXPECT_TRUE(judged({ok("Cache-Control: max-age=0, stale-if-error=0")}).refused);
  EXPECT_TRUE(judged({ok("Cache-Control: max-age=0, stale-if-error=9, must-revalidate")}).refused);
  const Verdict kept = judged({ok("Cache-Control: max-age=0, stale-if-error=9")});
  ASSERT_FALSE(kept.refused);
  EXPECT_EQ(use(kept, 0), Use::validate);
  EXPECT_TRUE(may_stand_in(kept.terms, (kNow + 8) * 1000));
  EXPECT_FALSE(may_stand_in(kept.terms, (kNow + 9) * 1000));
}

// RFC 9111 4.2.4: whatever our settings say.
TEST_F(Policy, NeverStaleWhereForbidden) {
  settings.stale_while_revalidate = settings.stale_if_error = 1000;
  for (const char* forbids : {"max-age=10, must-revalidate", "max-age=10, proxy-revalidate",
                              "s-maxage=10", "max-age=10, no-cache"}) {
    const Verdict verdict = judged({ok(std::string("ETag: \"x\"\nCache-Control: ") + forbids)});
    ASSERT_FALSE(verdict.refused) << forbids;
    EXPECT_EQ(use(verdict, 11), Use::validate) << forbids;
    EXPECT_FALSE(may_stand_in(verdict.terms, (kNow + 11) * 1000)) << forbids;
  }
  EXPECT_EQ(use(judged({ok("ETag: \"x\"\nCache-Control: max-age=10, no-cache")}), 1),
            Use::validate);
}

// 5.2.1.
TEST_F(Policy, RequestsCountOnlyWhereHonoured) {
  const auto use_with = [&](const std::string& control, Seconds later) {
    const Verdict verdict = judged({ok("Cache-Control: max-age=100"),
                                    "GET / HTTP/1.1\nHost: a\nCache-Control: " + control + "\n\n"});
    return use(verdict, later);
  };
  EXPECT_EQ(use_with("no-cache", 1), Use::fresh);
  settings.honour_requests = true;
  EXPECT_EQ(use_with("no-cache", 1), Use::validate);
  EXPECT_EQ(use_with("max-age=10", 9), Use::fresh);
  EXPECT_EQ(use_with("max-age=10", 10), Use::validate);
  EXPECT_EQ(use_with("min-fresh=10", 89), Use::fresh);
  EXPECT_EQ(use_with("min-fresh=10", 90), Use::validate);
  EXPECT_EQ(use_with("max-stale=10", 109), Use::fresh);
  EXPECT_EQ(use_with("max-stale=10", 110), Use::validate);
  EXPECT_EQ(use_with("max-stale", 100000), Use::fresh);
}

// RFC 8246.
TEST_F(Policy, ImmutableIsNotValidatedWhileFresh) {
  settings.honour_requests = true;
  const Verdict verdict = judged({ok("Cache-Control: max-age=100, immutable"),
                                  "GET / HTTP/1.1\nHost: a\nCache-Control: no-cache\n\n"});
  EXPECT_EQ(use(verdict, 99), Use::fresh);
  EXPECT_EQ(use(verdict, 100), Use::validate);
}

// RFC 9111 4.4.
TEST(Invalidation, UnsafeMethodsThatSucceeded) {
  using http::Method;
  for (const Method method :
       {Method::post, Method::put, Method::del, Method::patch, Method::other}) {
    EXPECT_TRUE(invalidates(method, 200));
    EXPECT_TRUE(invalidates(method, 303));
    EXPECT_FALSE(invalidates(method, 404));
    EXPECT_FALSE(invalidates(method, 500));
  }
  EXPECT_FALSE(invalidates(Method::get, 200));
  EXPECT_FALSE(invalidates(Method::options, 200));
}

}  // namespace
}  // namespace clockwise::cache
