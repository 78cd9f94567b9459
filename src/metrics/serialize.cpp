// The two text formats of a page.
#include <fmt/format.h>
#include <prometheus/serializer.h>
#include <prometheus/text_serializer.h>

#include <boost/algorithm/string/predicate.hpp>
#include <charconv>
#include <cmath>
#include <ostream>

#include "metrics/page.h"

namespace clockwise::metrics {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);  // the shortest text that reads back as the same value
}

// OpenMetrics wants a bound to look like a float: 1.0, not 1.
std::string bound(double value) {
  return std::isinf(value) ? number(value) : fmt::format("{:#}", value);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || c == '"')
      out.append(1, '\\').append(1, c);
    else
      out += c;
  }
  return out;
}

class OpenMetricsSerializer : public prometheus::Serializer {
 public:
  using Serializer::Serialize;
  void Serialize(std::ostream& out, const std::vector<MetricFamily>& families) const override {
    for (const MetricFamily& family : families) write_family(out, family);
    out << "# EOF\n";
  }

 private:
  // OpenMetrics names a counter without the `_total` that its samples carry.
  static std::string_view family_name(const MetricFamily& family) {
    std::string_view name = family.name;
    if (family.type == MetricType::Counter && name.ends_with("_total")) name.remove_suffix(6);
    return name;
  }

  static std::string_view type_name(MetricType type) {
    switch (type) {
      case MetricType::Counter:
        return "counter";
      case MetricType::Gauge:
        return "gauge";
      case MetricType::Histogram:
        return "histogram";
      case MetricType::Summary:
        return "summary";
      case MetricType::Untyped:
        return "unknown";
    }
    return "unknown";
  }

  static void write_family(std::ostream& out, const MetricFamily& family) {
    const std::string_view name = family_name(family);
    out << "# TYPE " << name << ' ' << type_name(family.type) << '\n'
        << "# HELP " << name << ' ' << escaped(family.help) << '\n';
    for (const ClientMetric& metric : family.metric) write_metric(out, family, metric);
  }

  static void write_metric(std::ostream& out, const MetricFamily& family,
                           const ClientMetric& metric) {
    if (family.type == MetricType::Histogram) return write_histogram(out, family.name, metric);
    const bool counter = family.type == MetricType::Counter;
    write_sample(out, family.name, metric, "", counter ? metric.counter.value : metric.gauge.value);
  }

  static void write_histogram(std::ostream& out, const std::string& name,
                              const ClientMetric& metric) {
    for (const ClientMetric::Bucket& bucket : metric.histogram.bucket)
      write_sample(out, name + "_bucket", metric, bound(bucket.upper_bound),
                   static_cast<double>(bucket.cumulative_count));
    write_sample(out, name + "_count", metric, "",
                 static_cast<double>(metric.histogram.sample_count));
    write_sample(out, name + "_sum", metric, "", metric.histogram.sample_sum);
  }

  static void write_sample(std::ostream& out, std::string_view name, const ClientMetric& metric,
                           std::string_view le, double value) {
    std::string labels;
    for (const ClientMetric::Label& label : metric.label)
      labels +=
          fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label.name, escaped(label.value));
    if (!le.empty()) labels += fmt::format("{}le=\"{}\"", labels.empty() ? "" : ",", le);
    out << name;
    if (!labels.empty()) out << '{' << labels << '}';
    out << ' ' << number(value) << '\n';
  }
};

// `q=` of one media range, 0 to 1; 1 when absent, 0 when it is no number.
double quality(std::string_view range) noexcept {
  const auto at = range.find("q=");
  if (at == std::string_view::npos) return 1;
  const std::string_view text = range.substr(at + 2);
  double q = 0;
  std::from_chars(text.data(), text.data() + text.size(), q);
  return q;
}

}  // namespace

Format preferred_format(std::string_view accept) noexcept {
  double openmetrics = 0, text = 0;
  while (!accept.empty()) {
    const auto comma = std::min(accept.find(','), accept.size());
    const std::string_view range = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    if (boost::algorithm::icontains(range, "application/openmetrics-text"))
      openmetrics = std::max(openmetrics, quality(range));
    else if (boost::algorithm::icontains(range, "text/plain"))
      text = std::max(text, quality(range));
  }
  return openmetrics > 0 && openmetrics >= text ? Format::openmetrics : Format::text;
}

std::string_view content_type(Format format) noexcept {
  return format == Format::openmetrics ? kOpenMetricsType : kTextType;
}

std::string serialize(const std::vector<MetricFamily>& families, Format format) {
  if (format == Format::openmetrics) return OpenMetricsSerializer{}.Serialize(families);
  return prometheus::TextSerializer{}.Serialize(families);
}

}  // namespace clockwise::metrics
