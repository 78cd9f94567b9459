// The REPORT object: every field, its type and what stands for "nothing".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "support/pools.h"
#include "upstream/json.h"
#include "upstream/plan.h"
#include "upstream/report_text.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;
using test::BuiltPool;
using test::kNoPool;
using test::server;
using testing::ElementsAre;

std::vector<std::string> fields(const json::object& object) {
  std::vector<std::string> names;
  for (const auto& field : object) names.emplace_back(field.key());
  return names;
}

json::object report_of_an_added_server() {
  const BuiltPool before{server("a"), server("b")}, after{server("a"), server("b"), server("c")};
  return to_json(plan(before, after));
}

TEST(ReportJson, HasTheFieldsOfTheInterface) {
  const json::object report = report_of_an_added_server();
  EXPECT_THAT(fields(report),
              ElementsAre("pool", "scheme", "exact", "digest_before", "digest_after", "moved_ratio",
                          "minimum_ratio", "needless_ratio", "moves", "servers", "guard"));
  EXPECT_THAT(fields(report.at("guard").as_object()),
              ElementsAre("max_remap", "max_shrink", "shrink_ratio", "refused_by"));
  EXPECT_THAT(fields(report.at("moves").at(0).as_object()), ElementsAre("from", "to", "ratio"));
  EXPECT_THAT(
      fields(report.at("servers").at(0).as_object()),
      ElementsAre("name", "changes", "address_before", "address_after", "state_before",
                  "state_after", "weight_before", "weight_after", "expected_before",
                  "expected_after", "share_before", "share_after", "lost_ratio", "gained_ratio"));
}

TEST(ReportJson, WritesNullForAnAbsentSide) {
  const json::value report = report_of_an_added_server();
  const json::object& added = report.at("servers").at(2).as_object();
  for (const char* field : {"address", "state", "weight", "expected", "share"}) {
    EXPECT_TRUE(added.at(std::string(field) + "_before").is_null()) << field;
    EXPECT_FALSE(added.at(std::string(field) + "_after").is_null()) << field;
  }
  EXPECT_TRUE(report.at("guard").at("refused_by").is_null());
  EXPECT_EQ(report.at("needless_ratio"), 0);
  const json::value fresh = to_json(plan(kNoPool, BuiltPool{server("a")}));
  EXPECT_TRUE(fresh.at("digest_before").is_null());
}

TEST(ReportJson, NamesTheGuardThatRefuses) {
  const BuiltPool before{server("a"), server("b"), server("c")}, after{server("a")};
  const json::value report = to_json(plan(before, after));
  EXPECT_EQ(report.at("guard").at("refused_by"), "max_shrink");
}

TEST(ReportJson, OfTheHistoryHasNoGuardAndNoKeys) {
  Report report = plan(BuiltPool{server("a")}, BuiltPool{server("a"), server("b")});
  report.keys = KeyCount{10, 5, {{"a", "b", 5}}};
  const json::object object = to_json(report, false);
  EXPECT_FALSE(object.contains("guard"));
  EXPECT_FALSE(object.contains("keys"));
}

TEST(ReportJson, HasTheKeysThatWereCounted) {
  Report report = plan(BuiltPool{server("a")}, BuiltPool{server("a"), server("b")});
  report.keys = KeyCount{10, 5, {{"a", "b", 5}}};
  EXPECT_EQ(
      to_json(report).at("keys"),
      json::parse(R"({"total": 10, "moved": 5, "moves": [{"from": "a", "to": "b", "count": 5}]})"));
}

TEST(ReportJson, HasSeenKeysAndCostWhereTheyAreKnown) {
  Report report = plan(BuiltPool{server("a")}, BuiltPool{server("a"), server("b")});
  EXPECT_FALSE(to_json(report).contains("seen_keys"));
  EXPECT_FALSE(to_json(report).contains("cost"));
  report.seen_keys = KeyCount{3, 1, {{"a", "b", 1}}};
  report.cost = Cost{2000, {}, {}};
  const json::object object = to_json(report);
  EXPECT_EQ(object.at("seen_keys").at("total"), 3);
  EXPECT_EQ(
      object.at("cost"),
      json::parse(
          R"({"requests_per_second": 2000, "hit_ratio": null, "extra_fetches_per_second": null})"));
  EXPECT_FALSE(to_json(report, false).contains("cost"));
}

TEST(ReportJson, WritesRatiosThatReadBackAsTheSameNumber) {
  const double ratios[] = {0.1, 1.0 / 3, 0.19621047973632812, 1e-17, 5e-324, 0.9999999999999999,
                           0.2, 1};
  for (const double ratio : ratios) {
    Report report;
    report.moved_ratio = ratio;
    const std::string text = to_text(to_json(report).at("moved_ratio"));
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), ratio) << text;
  }
}

TEST(ReportJson, AsTextInPiecesIsTheTextOfTheDocument) {
  config::Pool many = test::pool({}), others = test::pool({});
  for (int i = 0; i < 60; ++i) {
    many.servers.push_back(server("old-" + std::to_string(i)));
    others.servers.push_back(server("new-" + std::to_string(i)));
  }
  Report large = plan(BuiltPool{many}, BuiltPool{others});
  large.keys = KeyCount{3, 1, {{"a", "b", 1}}};
  const BuiltPool one{server("a")}, other{server("b")};
  for (const Report& report : {large, plan(one, other), plan(one, one), plan(kNoPool, one)}) {
    std::string text;
    std::size_t pieces = 0;
    write_json(report, [&](std::string_view piece) {
      text += piece;
      ++pieces;
    });
    EXPECT_EQ(text, to_text(to_json(report)));
    EXPECT_GE(pieces, report.moves.size() / 1000);
  }
}

TEST(ReportJson, WritesWholeWeightsAsWholeNumbers) {
  const BuiltPool pool{server("a", 2), server("b", 0.5)};
  const json::value report = to_json(plan(pool, pool));
  EXPECT_EQ(to_text(report.at("servers").at(0).at("weight_after")), "2");
  EXPECT_EQ(report.at("servers").at(1).at("weight_after"), 0.5);
}

}  // namespace
}  // namespace clockwise::upstream
