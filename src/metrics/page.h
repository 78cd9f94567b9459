// One answer of /metrics under construction: values go in by catalogue entry, families come out.
//
// Series = one line of the page; a histogram has one for each bucket, one for +Inf, sum and count.
// When the budget is used up, new series are left out and counted, those of earlier pages go on.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "metrics/catalogue.h"

namespace clockwise::metrics {

// Remembers from page to page which series exist. One owner, one thread.
class SeriesBudget {
 public:
  void begin_page(std::size_t max_series);
  // Whether the `lines` of this series may be on the page.
  [[nodiscard]] bool admit(const std::string& series, std::size_t lines);
  void end_page();  // series that were not asked for have ceased to exist

  [[nodiscard]] std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  struct Entry {
    std::size_t lines;
    std::uint64_t page;
  };
  std::unordered_map<std::string, Entry> admitted_;
  std::unordered_set<std::string> refused_, refused_now_;
  std::size_t max_ = 0, used_ = 0;
  std::uint64_t page_ = 0, suppressed_ = 0;
};

// What a reader asked for; an empty set means everything.
struct Filter {
  std::set<std::string, std::less<>> pools;  // series of other pools are left out
  std::set<std::string, std::less<>> names;  // so are other metrics

  [[nodiscard]] bool wants(const Metric& metric, std::string_view pool) const;
};

// Finite upper bounds in nanoseconds and what each bucket holds, not cumulative; the last bucket,
// one more than there are bounds, is +Inf.
struct HistogramValue {
  std::span<const std::uint64_t> bounds_ns;
  std::vector<std::uint64_t> buckets;
  double sum_seconds = 0;
};

class Page {
 public:
  // `budget` and `filter` must outlive the page.
  Page(SeriesBudget& budget, std::size_t max_series, const Filter& filter);

  // The values of the labels in the order of the catalogue. REQUIRES: as many as it has labels.
  void add(Id id, std::initializer_list<std::string_view> labels, double value);
  void add(Id id, std::initializer_list<std::string_view> labels, const HistogramValue& value);

  // Counts the series, says so on the page itself, and gives the families that have any, in the
  // order of the catalogue.
  [[nodiscard]] std::vector<prometheus::MetricFamily> finish(double last_render_seconds);

 private:
  prometheus::ClientMetric* series(const Metric& metric,
                                   std::initializer_list<std::string_view> labels,
                                   std::size_t lines);

  SeriesBudget& budget_;
  const Filter& filter_;
  std::array<prometheus::MetricFamily, kMetrics> families_;
  std::size_t lines_ = 0;
};

// The classic text format and OpenMetrics; what `Content-Type` to send with each.
enum class Format { text, openmetrics };
inline constexpr std::string_view kTextType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

[[nodiscard]] Format preferred_format(std::string_view accept) noexcept;
[[nodiscard]] std::string_view content_type(Format format) noexcept;
[[nodiscard]] std::string serialize(const std::vector<prometheus::MetricFamily>& families,
                                    Format format);

}  // namespace clockwise::metrics
