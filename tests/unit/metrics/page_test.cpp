#include "metrics/page.h"

#include <gmock/gmock.h>

namespace clockwise::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::array<std::uint64_t, 2> kBounds{1'000'000, 1'000'000'000};

std::string text_of(Page& page, Format format = Format::text) {
  return serialize(page.finish(0.5), format);
}

TEST(Page, WritesTheClassicText) {
  SeriesBudget budget;
  const Filter all;
  Page page(budget, 100, all);
  page.add(Id::backend_requests_total, {"p", "a", "2xx"}, 3);
  page.add(Id::ring_share_ratio, {"p", "a"}, 0.25);
  const std::string text = text_of(page);
  EXPECT_THAT(text, HasSubstr("# TYPE clockwise_backend_requests_total counter\n"));
  EXPECT_THAT(
      text,
      HasSubstr("clockwise_backend_requests_total{pool=\"p\",backend=\"a\",code=\"2xx\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("clockwise_ring_share_ratio{pool=\"p\",backend=\"a\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("clockwise_metrics_series 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("clockwise_remaps_total")));
}

TEST(Page, WritesOpenMetrics) {
  SeriesBudget budget;
  const Filter all;
  Page page(budget, 100, all);
  page.add(Id::remaps_total, {"p", "reload"}, 2);
  page.add(Id::ring_build_duration_seconds, {"p"}, {kBounds, {1, 2, 3}, 7.5});
  const std::string text = text_of(page, Format::openmetrics);
  EXPECT_THAT(text, HasSubstr("# TYPE clockwise_remaps counter\n# HELP clockwise_remaps "));
  EXPECT_THAT(text, HasSubstr("\nclockwise_remaps_total{pool=\"p\",cause=\"reload\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{pool=\"p\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{pool=\"p\",le=\"1.0\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{pool=\"p\",le=\"+Inf\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("_count{pool=\"p\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("_sum{pool=\"p\"} 7.5\n"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST(Page, FiltersByPoolAndName) {
  SeriesBudget budget;
  const Filter filter{{"p"}, {"clockwise_ring_share_ratio"}};
  Page page(budget, 100, filter);
  page.add(Id::ring_share_ratio, {"p", "a"}, 1);
  page.add(Id::ring_share_ratio, {"q", "a"}, 1);
  page.add(Id::backend_weight, {"p", "a"}, 1);
  page.add(Id::process_open_fds, {}, 9);
  const auto families = page.finish(0);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].metric.size(), 1U);
}

TEST(SeriesBudget, KeepsWhatExistsAndCountsWhatDoesNotFitOnce) {
  SeriesBudget budget;
  const auto admitted = [&](std::initializer_list<const char*> names) {
    std::string result;
    budget.begin_page(2);
    for (const char* name : names)
      if (budget.admit(name, 1)) result += name;
    budget.end_page();
    return result;
  };
  EXPECT_EQ(admitted({"a", "b"}), "ab");
  EXPECT_EQ(admitted({"c", "b", "a"}), "ba");
  EXPECT_EQ(budget.suppressed(), 1U);
  EXPECT_EQ(admitted({"c", "b", "a"}), "ba");
  EXPECT_EQ(budget.suppressed(), 1U) << "still the same series";
  EXPECT_EQ(admitted({"c", "b"}), "b") << "the place of a is free from the next page on";
  EXPECT_EQ(admitted({"c", "b"}), "cb");
  EXPECT_EQ(budget.suppressed(), 1U);
}

TEST(SeriesBudget, CountsEachLineOfAHistogram) {
  SeriesBudget budget;
  budget.begin_page(12);
  EXPECT_FALSE(budget.admit("histogram", 13));
  EXPECT_EQ(budget.suppressed(), 13U);
}

TEST(SeriesBudget, FilterDoesNotForgetSeries) {
  SeriesBudget budget;
  const Filter all, one{{}, {"clockwise_ring_info"}};
  const auto render = [&](const Filter& filter) {
    Page page(budget, 1, filter);
    page.add(Id::backend_weight, {"p", "a"}, 1);
    page.add(Id::backend_weight, {"p", "b"}, 1);
    return text_of(page);
  };
  render(all);
  render(one);
  EXPECT_THAT(render(all), HasSubstr("clockwise_metrics_series_suppressed_total 1\n"));
}

struct Preference {
  const char* name;
  const char* accept;
  Format format;
};

TEST(PreferredFormat, FollowsTheAcceptField) {
  const Preference rows[]{
      {"nothing", "", Format::text},
      {"anything", "*/*", Format::text},
      {"Prometheus 2",
       "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
       "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       Format::openmetrics},
      {"text first", "text/plain;q=0.9, application/openmetrics-text;q=0.2", Format::text},
      {"refused", "application/openmetrics-text;q=0", Format::text},
  };
  for (const Preference& row : rows)
    EXPECT_EQ(preferred_format(row.accept), row.format) << row.name;
}

}  // namespace
}  // namespace clockwise::metrics
