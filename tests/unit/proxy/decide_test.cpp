#include "proxy/decide.h"

#include <gtest/gtest.h>

#include <string>

namespace clockwise::proxy {
namespace {

using http::Method;
using metrics::RetryReason;
using metrics::RetrySuppressed;

struct Row {
  std::string name;
  Failure failure;
  Attempt attempt;
  Next next;
};

class RetryRules : public testing::TestWithParam<Row> {};

TEST_P(RetryRules, Hold) {
  EXPECT_EQ(after_failure(GetParam().failure, GetParam().attempt).next, GetParam().next);
}

constexpr Attempt attempt(Method method, bool sent, bool reused, std::uint32_t left = 2) {
  return {.method = method, .sent = sent, .reused = reused, .retries_left = left};
}

Attempt with_body_gone(Attempt a) {
  a.replayable = false;
  return a;
}
Attempt forgiven_once(Attempt a) {
  a.fresh_tried = true;
  return a;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RetryRules,
    testing::Values(
        Row{"refused_get", Failure::connect, attempt(Method::get, false, false), Next::next_server},
        Row{"refused_post", Failure::connect, attempt(Method::post, false, false),
            Next::next_server},
        Row{"connect_timeout_post", Failure::connect_timeout, attempt(Method::post, false, false),
            Next::next_server},
        Row{"unresolved", Failure::unresolved, attempt(Method::put, false, false),
            Next::next_server},
        Row{"refused_no_tries_left", Failure::connect, attempt(Method::get, false, false, 0),
            Next::give_up},
        Row{"stale_get", Failure::reset, attempt(Method::get, true, true), Next::fresh_connection},
        Row{"stale_get_costs_no_try", Failure::reset, attempt(Method::get, true, true, 0),
            Next::fresh_connection},
        Row{"stale_twice", Failure::reset, forgiven_once(attempt(Method::get, true, true)),
            Next::next_server},
        Row{"stale_post_sent", Failure::reset, attempt(Method::post, true, true), Next::give_up},
        Row{"stale_post_unsent", Failure::reset, attempt(Method::post, false, true),
            Next::fresh_connection},
        Row{"stale_patch_sent", Failure::reset, attempt(Method::patch, true, true), Next::give_up},
        Row{"unknown_method_sent", Failure::reset, attempt(Method::other, true, true),
            Next::give_up},
        Row{"fresh_reset_get", Failure::reset, attempt(Method::get, true, false),
            Next::next_server},
        Row{"fresh_reset_put", Failure::reset, attempt(Method::put, true, false),
            Next::next_server},
        Row{"fresh_reset_post", Failure::reset, attempt(Method::post, true, false), Next::give_up},
        Row{"body_not_in_buffer", Failure::reset, with_body_gone(attempt(Method::put, true, true)),
            Next::give_up},
        Row{"timeout_get", Failure::timeout, attempt(Method::get, true, false), Next::give_up},
        Row{"garbage_get", Failure::protocol, attempt(Method::get, true, false), Next::give_up},
        Row{"nobody", Failure::no_server, attempt(Method::get, false, false), Next::give_up}),
    [](const auto& param) { return param.param.name; });

TEST(RetryRules, SayWhyThereIsNone) {
  EXPECT_EQ(after_failure(Failure::reset, attempt(Method::post, true, true)).suppressed,
            RetrySuppressed::unsafe_method);
  EXPECT_EQ(
      after_failure(Failure::reset, with_body_gone(attempt(Method::put, true, false))).suppressed,
      RetrySuppressed::body_sent);
  EXPECT_EQ(after_failure(Failure::connect, attempt(Method::get, false, false, 0)).suppressed,
            RetrySuppressed::budget);
}

TEST(RetryRules, NameTheReason) {
  EXPECT_EQ(after_failure(Failure::reset, attempt(Method::get, true, true)).reason,
            RetryReason::stale_connection);
  EXPECT_EQ(after_failure(Failure::reset, attempt(Method::get, true, false)).reason,
            RetryReason::reset);
  EXPECT_EQ(after_failure(Failure::connect, attempt(Method::get, false, false)).reason,
            RetryReason::connect);
}

// RFC 9209 section 2.3 recommends these statuses.
TEST(Blame, GivesTheStatusOfTheStandard) {
  EXPECT_EQ(blame(Failure::no_server).status, 503);
  EXPECT_EQ(blame(Failure::unresolved).status, 503);
  EXPECT_EQ(blame(Failure::connect).status, 502);
  EXPECT_EQ(blame(Failure::connect_timeout).status, 504);
  EXPECT_EQ(blame(Failure::reset).status, 502);
  EXPECT_EQ(blame(Failure::timeout).status, 504);
  EXPECT_EQ(blame(Failure::protocol).status, 502);
}

TEST(ClientFraming, ChunksForOldClientsEndWithTheConnection) {
  using http::BodyKind;
  EXPECT_EQ(client_framing(BodyKind::chunked, 1), BodyKind::chunked);
  EXPECT_EQ(client_framing(BodyKind::chunked, 0), BodyKind::until_close);
  EXPECT_EQ(client_framing(BodyKind::until_close, 1), BodyKind::chunked);
  EXPECT_EQ(client_framing(BodyKind::until_close, 0), BodyKind::until_close);
  EXPECT_EQ(client_framing(BodyKind::length, 0), BodyKind::length);
  EXPECT_EQ(client_framing(BodyKind::none, 1), BodyKind::none);
}

}  // namespace
}  // namespace clockwise::proxy
