#include "metrics/page.h"

#include <algorithm>
#include <limits>

namespace clockwise::metrics {

namespace {

// The page's own figures are always on it, whatever the budget says.
constexpr std::initializer_list<Id> kOwn{Id::metrics_series, Id::metrics_series_suppressed_total,
                                         Id::metrics_render_duration_seconds};

prometheus::ClientMetric::Histogram to_prometheus(const HistogramValue& value) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_sum = value.sum_seconds;
  for (std::size_t i = 0; i < value.buckets.size(); ++i) {
    histogram.sample_count += value.buckets[i];
    const double bound = i < value.bounds_ns.size() ? static_cast<double>(value.bounds_ns[i]) / 1e9
                                                    : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  return histogram;
}

std::string series_key(const Metric& metric, std::initializer_list<std::string_view> labels) {
  std::string key{metric.name};
  for (const std::string_view label : labels) key.append(1, '\0').append(label);
  return key;
}

}  // namespace

void SeriesBudget::begin_page(std::size_t max_series) {
  max_ = max_series;
  ++page_;
  refused_now_.clear();
}

bool SeriesBudget::admit(const std::string& series, std::size_t lines) {
  if (const auto known = admitted_.find(series); known != admitted_.end()) {
    known->second.page = page_;
    return true;
  }
  if (used_ + lines <= max_) {
    admitted_.emplace(series, Entry{lines, page_});
    used_ += lines;
    return true;
  }
  if (refused_now_.insert(series).second && !refused_.contains(series)) suppressed_ += lines;
  return false;
}

void SeriesBudget::end_page() {
  std::erase_if(admitted_, [&](const auto& item) {
    if (item.second.page == page_) return false;
    used_ -= item.second.lines;
    return true;
  });
  refused_ = std::move(refused_now_);
}

bool Filter::wants(const Metric& metric, std::string_view pool) const {
  if (!names.empty() && !names.contains(metric.name)) return false;
  return pools.empty() || (metric.has_label("pool") && pools.contains(pool));
}

Page::Page(SeriesBudget& budget, std::size_t max_series, const Filter& filter)
    : budget_(budget), filter_(filter) {
  budget_.begin_page(max_series);
}

prometheus::ClientMetric* Page::series(const Metric& metric,
                                       std::initializer_list<std::string_view> labels,
                                       std::size_t lines) {
  const bool own = std::ranges::find(kOwn, metric.id) != kOwn.end();
  if (!own && !budget_.admit(series_key(metric, labels), lines)) return nullptr;
  // In the catalogue `pool` is always the first label.
  if (!filter_.wants(metric, labels.size() > 0 ? *labels.begin() : "")) return nullptr;

  lines_ += lines;
  auto& added = families_[static_cast<std::size_t>(metric.id)].metric.emplace_back();
  for (std::size_t i = 0; const std::string_view label : labels)
    added.label.push_back({std::string(metric.labels[i++]), std::string(label)});
  return &added;
}

void Page::add(Id id, std::initializer_list<std::string_view> labels, double value) {
  const Metric& what = metric(id);
  prometheus::ClientMetric* added = series(what, labels, 1);
  if (!added) return;
  if (what.type == prometheus::MetricType::Counter)
    added->counter.value = value;
  else
    added->gauge.value = value;
}

void Page::add(Id id, std::initializer_list<std::string_view> labels, const HistogramValue& value) {
  if (prometheus::ClientMetric* added = series(metric(id), labels, value.buckets.size() + 2))
    added->histogram = to_prometheus(value);
}

std::vector<prometheus::MetricFamily> Page::finish(double last_render_seconds) {
  budget_.end_page();
  add(Id::metrics_series_suppressed_total, {}, static_cast<double>(budget_.suppressed()));
  add(Id::metrics_render_duration_seconds, {}, last_render_seconds);
  const bool counts_itself = filter_.wants(metric(Id::metrics_series), "");
  add(Id::metrics_series, {}, static_cast<double>(lines_ + (counts_itself ? 1 : 0)));

  std::vector<prometheus::MetricFamily> result;
  for (const Metric& what : catalogue()) {
    auto& family = families_[static_cast<std::size_t>(what.id)];
    if (family.metric.empty()) continue;
    family.name = what.name;
    family.help = what.help;
    family.type = what.type;
    result.push_back(std::move(family));
  }
  return result;
}

}  // namespace clockwise::metrics
