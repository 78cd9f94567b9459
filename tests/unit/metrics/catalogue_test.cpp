#include "metrics/catalogue.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace clockwise::metrics {
namespace {

using testing::HasSubstr;

std::string documentation() {
  std::ifstream file(CLOCKWISE_SOURCE_DIR "/docs/metrics.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string type_name(prometheus::MetricType type) {
  if (type == prometheus::MetricType::Counter) return "counter";
  return type == prometheus::MetricType::Gauge ? "gauge" : "histogram";
}

std::string joined_labels(const Metric& metric) {
  std::string text;
  for (std::size_t i = 0; i < metric.label_count(); ++i)
    text += (i > 0 ? ", " : "") + std::string(metric.labels[i]);
  return text.empty() ? "–" : text;
}

TEST(Catalogue, NamesFollowTheRules) {
  std::set<std::string_view> seen;
  for (const Metric& metric : catalogue()) {
    EXPECT_TRUE(seen.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(metric.name.starts_with("clockwise_") || metric.name.starts_with("process_"))
        << metric.name;
    EXPECT_EQ(metric.type == prometheus::MetricType::Counter, metric.name.ends_with("_total"))
        << metric.name;
  }
}

TEST(Catalogue, HelpIsOneLineWithoutABackslash) {
  for (const Metric& metric : catalogue()) {
    EXPECT_FALSE(metric.help.empty()) << metric.name;
    EXPECT_EQ(metric.help.find_first_of("\\\n"), std::string_view::npos) << metric.name;
  }
}

TEST(Catalogue, PoolIsAlwaysTheFirstLabel) {
  for (const Metric& metric : catalogue())
    EXPECT_EQ(metric.has_label("pool"), metric.labels[0] == "pool") << metric.name;
}

TEST(Catalogue, EveryMetricIsDocumented) {
  const std::string page = documentation();
  for (const Metric& metric : catalogue()) {
    const std::string row = "| `" + std::string(metric.name) + "` | " + type_name(metric.type) +
                            " | " + joined_labels(metric) + " | " + std::string(metric.unit) +
                            " | ";
    EXPECT_THAT(page, HasSubstr(row));
  }
}

TEST(Catalogue, NothingElseIsDocumented) {
  std::set<std::string> known;
  for (const Metric& metric : catalogue()) known.emplace(metric.name);
  std::ifstream file(CLOCKWISE_SOURCE_DIR "/docs/metrics.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    EXPECT_TRUE(known.contains(line.substr(3, line.find('`', 3) - 3))) << line;
  }
}

}  // namespace
}  // namespace clockwise::metrics
