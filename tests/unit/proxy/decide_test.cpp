#include "proxy/decide.h"

#include <gtest/gtest.h>

#include <cerrno>
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
  config::RetryOn on = {};  // connect and reset
};

class RetryRules : public testing::TestWithParam<Row> {};

TEST_P(RetryRules, Hold) {
  const Row& row = GetParam();
  EXPECT_EQ(after_failure(row.failure, row.attempt, row.on).next, row.next);
}

TEST(Evidence, AKeptConnectionThatEndsTellsNothingOfItsServer) {
  for (const Failure failure : {Failure::connect, Failure::connect_timeout, Failure::timeout,
                                Failure::protocol, Failure::total}) {
    EXPECT_TRUE(is_evidence(failure, true));
    EXPECT_TRUE(is_evidence(failure, false));
  }
  EXPECT_TRUE(is_evidence(Failure::reset, false));
  EXPECT_FALSE(is_evidence(Failure::reset, true));
  for (const Failure failure : {Failure::no_server, Failure::unresolved, Failure::local,
                                Failure::status, Failure::queue_full, Failure::queue_timeout})
    EXPECT_FALSE(is_evidence(failure, false));
}

TEST(ConnectFailure, WhatThisMachineLacksIsNoFaultOfTheServer) {
  const auto of = [](int number) {
    return connect_failure({number, boost::system::system_category()});
  };
  for (const int number : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL})
    EXPECT_EQ(of(number), Failure::local) << number;
  EXPECT_EQ(of(ETIMEDOUT), Failure::connect_timeout);
  for (const int number : {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ECONNRESET, EAGAIN})
    EXPECT_EQ(of(number), Failure::connect) << number;
  EXPECT_FALSE(blame(Failure::local).counted);
}

constexpr Attempt attempt(Method method, bool sent, bool reused, std::uint32_t left = 2) {
  return {.method = method, .sent = sent, .reused = reused, .retries_left = left};
}
constexpr Attempt sent(Method method) { return attempt(method, true, false); }
constexpr Attempt unsent(Method method) { return attempt(method, false, false); }

Attempt with_body_gone(Attempt a) {
  a.replayable = false;
  return a;
}
Attempt forgiven_once(Attempt a) {
  a.fresh_tried = true;
  return a;
}
Attempt alone(Attempt a) {
  a.candidate = false;
  return a;
}
Attempt over_budget(Attempt a) {
  a.in_budget = false;
  return a;
}

constexpr config::RetryOn kNothing{.connect = false, .reset = false};
constexpr config::RetryOn kTimeout{.connect = false, .reset = false, .timeout = true};
constexpr config::RetryOn kStatus{.connect = false, .reset = false, .s503 = true};

INSTANTIATE_TEST_SUITE_P(
    Table, RetryRules,
    testing::Values(
        Row{"nothing_left_to_connect_with", Failure::local, unsent(Method::get), Next::give_up},
        Row{"refused_get", Failure::connect, unsent(Method::get), Next::next_server},
        Row{"refused_post", Failure::connect, unsent(Method::post), Next::next_server},
        Row{"refused_without_budget", Failure::connect, over_budget(unsent(Method::get)),
            Next::next_server},
        Row{"refused_alone", Failure::connect, alone(unsent(Method::get)), Next::give_up},
        Row{"refused_not_asked_for", Failure::connect, unsent(Method::get), Next::give_up,
            kTimeout},
        Row{"connect_timeout_post", Failure::connect_timeout, unsent(Method::post),
            Next::next_server},
        Row{"connect_timeout_is_no_timeout", Failure::connect_timeout, unsent(Method::get),
            Next::give_up, kTimeout},
        Row{"unresolved", Failure::unresolved, unsent(Method::put), Next::next_server},
        Row{"refused_no_tries_left", Failure::connect, attempt(Method::get, false, false, 0),
            Next::give_up},
        Row{"stale_get", Failure::reset, attempt(Method::get, true, true), Next::fresh_connection},
        Row{"stale_get_costs_no_try", Failure::reset, attempt(Method::get, true, true, 0),
            Next::fresh_connection},
        Row{"stale_get_costs_no_budget", Failure::reset,
            over_budget(attempt(Method::get, true, true)), Next::fresh_connection},
        Row{"stale_get_alone", Failure::reset, alone(attempt(Method::get, true, true)),
            Next::fresh_connection},
        Row{"stale_get_always", Failure::reset, attempt(Method::get, true, true),
            Next::fresh_connection, kNothing},
        Row{"stale_twice", Failure::reset, forgiven_once(attempt(Method::get, true, true)),
            Next::next_server},
        Row{"stale_post_sent", Failure::reset, attempt(Method::post, true, true), Next::give_up},
        Row{"stale_post_unsent", Failure::reset, attempt(Method::post, false, true),
            Next::fresh_connection},
        Row{"stale_patch_sent", Failure::reset, attempt(Method::patch, true, true), Next::give_up},
        Row{"unknown_method_sent", Failure::reset, attempt(Method::other, true, true),
            Next::give_up},
        Row{"fresh_reset_get", Failure::reset, sent(Method::get), Next::next_server},
        Row{"fresh_reset_put", Failure::reset, sent(Method::put), Next::next_server},
        Row{"fresh_reset_post", Failure::reset, sent(Method::post), Next::give_up},
        Row{"fresh_reset_post_unsent", Failure::reset, over_budget(unsent(Method::post)),
            Next::next_server},
        Row{"fresh_reset_without_budget", Failure::reset, over_budget(sent(Method::get)),
            Next::give_up},
        Row{"fresh_reset_not_asked_for", Failure::reset, sent(Method::get), Next::give_up, kStatus},
        Row{"body_not_in_buffer", Failure::reset, with_body_gone(attempt(Method::put, true, true)),
            Next::give_up},
        Row{"timeout_get", Failure::timeout, sent(Method::get), Next::give_up},
        Row{"timeout_get_asked_for", Failure::timeout, sent(Method::get), Next::next_server,
            kTimeout},
        Row{"timeout_get_reused", Failure::timeout, attempt(Method::get, true, true),
            Next::next_server, kTimeout},
        Row{"timeout_post_asked_for", Failure::timeout, sent(Method::post), Next::give_up,
            kTimeout},
        Row{"timeout_without_budget", Failure::timeout, over_budget(sent(Method::get)),
            Next::give_up, kTimeout},
        Row{"status_get", Failure::status, sent(Method::get), Next::next_server, kStatus},
        Row{"status_reused_get", Failure::status, attempt(Method::get, true, true),
            Next::next_server, kStatus},
        Row{"status_post", Failure::status, sent(Method::post), Next::give_up, kStatus},
        Row{"status_patch", Failure::status, sent(Method::patch), Next::give_up, kStatus},
        Row{"status_put_body_gone", Failure::status, with_body_gone(sent(Method::put)),
            Next::give_up, kStatus},
        Row{"status_without_budget", Failure::status, over_budget(sent(Method::get)), Next::give_up,
            kStatus},
        Row{"status_no_tries_left", Failure::status, attempt(Method::get, true, false, 0),
            Next::give_up, kStatus},
        Row{"status_alone", Failure::status, alone(sent(Method::get)), Next::give_up, kStatus},
        Row{"garbage_get", Failure::protocol, sent(Method::get), Next::give_up},
        Row{"out_of_time", Failure::total, sent(Method::get), Next::give_up, kTimeout},
        Row{"nobody", Failure::no_server, unsent(Method::get), Next::give_up}),
    [](const auto& param) { return param.param.name; });

TEST(RetryRules, SayWhyThereIsNone) {
  const auto why = [](Failure failure, const Attempt& attempt, config::RetryOn on = {}) {
    return after_failure(failure, attempt, on).suppressed;
  };
  EXPECT_EQ(why(Failure::reset, attempt(Method::post, true, true)), RetrySuppressed::unsafe_method);
  EXPECT_EQ(why(Failure::reset, with_body_gone(sent(Method::put))), RetrySuppressed::body_sent);
  EXPECT_EQ(why(Failure::connect, attempt(Method::get, false, false, 0)),
            RetrySuppressed::no_candidate);
  EXPECT_EQ(why(Failure::reset, alone(sent(Method::get))), RetrySuppressed::no_candidate);
  EXPECT_EQ(why(Failure::reset, over_budget(sent(Method::get))), RetrySuppressed::budget);
  // Without a try left the budget is not to blame.
  EXPECT_EQ(why(Failure::reset, over_budget(attempt(Method::get, true, false, 0))),
            RetrySuppressed::no_candidate);
  // Nobody asked for one.
  EXPECT_EQ(why(Failure::timeout, sent(Method::get)), std::nullopt);
  EXPECT_EQ(why(Failure::protocol, sent(Method::get)), std::nullopt);
  EXPECT_EQ(why(Failure::reset, sent(Method::get), kNothing), std::nullopt);
}

TEST(RetryRules, NameTheReason) {
  const auto reason = [](Failure failure, const Attempt& attempt, config::RetryOn on = {}) {
    return after_failure(failure, attempt, on).reason;
  };
  EXPECT_EQ(reason(Failure::reset, attempt(Method::get, true, true)),
            RetryReason::stale_connection);
  EXPECT_EQ(reason(Failure::reset, sent(Method::get)), RetryReason::reset);
  EXPECT_EQ(reason(Failure::connect, unsent(Method::get)), RetryReason::connect);
  EXPECT_EQ(reason(Failure::timeout, sent(Method::get), kTimeout), RetryReason::timeout);
  EXPECT_EQ(reason(Failure::status, sent(Method::get), kStatus), RetryReason::status);
}

TEST(RetryRules, OnlyWhatWasSentCostsBudget) {
  EXPECT_TRUE(after_failure(Failure::reset, sent(Method::get), {}).from_budget);
  EXPECT_TRUE(after_failure(Failure::status, sent(Method::get), kStatus).from_budget);
  EXPECT_FALSE(after_failure(Failure::connect, unsent(Method::get), {}).from_budget);
  EXPECT_FALSE(after_failure(Failure::reset, unsent(Method::post), {}).from_budget);
  EXPECT_FALSE(after_failure(Failure::reset, attempt(Method::get, true, true), {}).from_budget);
}

TEST(RetryRules, OnlyTheNamedStatusesAreCauses) {
  const config::RetryOn on{.s502 = true, .s504 = true};
  EXPECT_TRUE(is_cause(on, 502));
  EXPECT_TRUE(is_cause(on, 504));
  for (const unsigned status : {200U, 429U, 500U, 501U, 503U, 505U}) {
    EXPECT_FALSE(is_cause(on, status)) << status;
  }
}

// RFC 9209 section 2.3 recommends these statuses.
TEST(Blame, GivesTheStatusOfTheStandard) {
  EXPECT_EQ(blame(Failure::no_server).status, 503);
  EXPECT_EQ(blame(Failure::unresolved).status, 503);
  EXPECT_EQ(blame(Failure::local).status, 503);
  EXPECT_EQ(blame(Failure::connect).status, 502);
  EXPECT_EQ(blame(Failure::connect_timeout).status, 504);
  EXPECT_EQ(blame(Failure::reset).status, 502);
  EXPECT_EQ(blame(Failure::timeout).status, 504);
  EXPECT_EQ(blame(Failure::protocol).status, 502);
  EXPECT_EQ(blame(Failure::total).status, 504);
  EXPECT_EQ(blame(Failure::queue_full).status, 503);
  EXPECT_EQ(blame(Failure::queue_timeout).status, 503);
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
