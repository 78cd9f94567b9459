#include "simulate/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace clockwise::simulate {
namespace {

// Colours are classes, so that the viewer's preference decides between the two grounds.
constexpr std::string_view kStyle = R"(<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .small { font-size: 12px; fill: #59636e }
.ground { fill: #ffffff } .grid { stroke: #d8dee4 } .axis { stroke: #818b98 }
.fair, .least { stroke: #1f2328; stroke-dasharray: 5 4 } .band { fill: #818b98; fill-opacity: .22 }
.needed { fill: #6e7781 } .needless { fill: #e5534b } .line { fill: none; stroke-width: 1.6 } .dot { fill-opacity: .75 }
.f0 { fill: #0969da } .f1 { fill: #bc4c00 } .f2 { fill: #1a7f37 } .f3 { fill: #8250df }
.s0 { stroke: #0969da } .s1 { stroke: #bc4c00 } .s2 { stroke: #1a7f37 } .s3 { stroke: #8250df }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .ground { fill: #0d1117 } .grid { stroke: #2a313a }
.axis { stroke: #656c76 } .fair, .least { stroke: #e6edf3 } .needed { fill: #8b949e }
.needless { fill: #f47067 }
.f0 { fill: #58a6ff } .f1 { fill: #f0883e } .f2 { fill: #3fb950 } .f3 { fill: #bc8cff }
.s0 { stroke: #58a6ff } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 } .s3 { stroke: #bc8cff }
}
</style>
)";

constexpr std::size_t kColours = 4;
constexpr double kTop = 76;  // of both plots
constexpr double kPlotHeight = 280;
constexpr double kPlotWidth = 450;
constexpr double kBarsWidth = 270;
constexpr double kBarRow = 34;
constexpr double kBarLabel = 150;  // room for the names beside the bars
constexpr double kLegendRow = 20;

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return safe;
}

// Collects the elements.
class Drawing {
 public:
  void text(double x, double y, std::string_view text, std::string_view style = "",
            std::string_view anchor = "start") {
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                    x, y, style, anchor, escaped(text));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
        x2, y2, style);
  }
  void box(double x, double y, double width, double height, std::string_view style) {
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>\n", x, y,
        width, height, style);
  }
  void dot(double x, double y, std::string_view style) {
    out_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\" class=\"{}\"/>\n", x, y, style);
  }
  void path(const std::vector<std::pair<double, double>>& points, bool closed,
            std::string_view style) {
    out_ += "<path d=\"";
    for (std::size_t i = 0; i < points.size(); ++i)
      out_ += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", points[i].first, points[i].second);
    out_ += fmt::format("{}\" class=\"{}\"/>\n", closed ? "Z" : "", style);
  }
  void turned(double x, double y, std::string_view text) {
    out_ += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        x, y, escaped(text));
  }

  std::string finish(double width, double height) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "aria-label=\"Load of the servers against points; share of the keys that moved\">\n"
        "{2}<rect width=\"{0:.0f}\" height=\"{1:.0f}\" class=\"ground\"/>\n{3}</svg>\n",
        width, height, kStyle, out_);
  }

 private:
  std::string out_;
};

// The rows of one scheme, by number of points.
struct Series {
  std::string scheme;
  std::vector<const Row*> rows;
};

bool same_change(const Row& a, const Row& b) {
  return a.servers_before == b.servers_before && a.servers_after == b.servers_after &&
         a.minimum_ratio == b.minimum_ratio;
}

std::vector<Series> series_of(std::span<const Row> rows) {
  std::vector<Series> all;
  for (const Row& row : rows) {
    if (!same_change(row, rows.front())) continue;
    auto place = std::ranges::find(all, row.scheme, &Series::scheme);
    if (place == all.end()) place = all.insert(all.end(), Series{row.scheme, {}});
    place->rows.push_back(&row);
  }
  for (Series& series : all)
    std::ranges::sort(series.rows, {}, [](const Row* row) { return row->points; });
  return all;
}

std::string colour(char property, std::size_t series) {
  return fmt::format("{}{}", property, series % kColours);
}

// A number of points, a load -> a place on the left plot.
class Scales {
 public:
  Scales(double left, const std::vector<std::uint64_t>& points, double highest)
      : left_(left),
        low_(std::log(static_cast<double>(points.front()) / 1.3)),
        high_(std::log(static_cast<double>(points.back()) * 1.3)),
        highest_(highest) {}

  [[nodiscard]] double x(double points) const {
    return left_ + kPlotWidth * (std::log(points) - low_) / (high_ - low_);
  }
  [[nodiscard]] double y(double load) const {
    return kTop + kPlotHeight * (1 - std::clamp(load / highest_, 0.0, 1.0));
  }
  [[nodiscard]] double highest() const { return highest_; }

 private:
  double left_, low_, high_, highest_;
};

void draw_axes(Drawing& drawing, const Scales& scales, double left,
               const std::vector<std::uint64_t>& points) {
  const double right = left + kPlotWidth;
  const double step = scales.highest() > 3 ? 1 : 0.5;
  for (double load = 0; load <= scales.highest(); load += step) {
    drawing.line(left, scales.y(load), right, scales.y(load), load == 1 ? "fair" : "grid");
    drawing.text(left - 8, scales.y(load) + 4, fmt::format("{:g}", load), "small", "end");
  }
  drawing.line(left, scales.y(0), right, scales.y(0), "axis");
  double free_from = 0;  // labels must not run into each other
  for (const std::uint64_t count : points) {
    const double x = scales.x(static_cast<double>(count));
    drawing.line(x, scales.y(0), x, scales.y(0) + 5, "axis");
    if (x < free_from) continue;
    drawing.text(x, scales.y(0) + 19, fmt::format("{}", count), "small", "middle");
    free_from = x + 28;
  }
  drawing.text(left + kPlotWidth / 2, scales.y(0) + 40, "points of each server, V (logarithmic)",
               "", "middle");
  drawing.turned(left - 42, kTop + kPlotHeight / 2, "load of a server / fair load");
}

void draw_band(Drawing& drawing, const Scales& scales, const std::vector<std::uint64_t>& points) {
  constexpr int kSteps = 60;
  const double low = std::log(static_cast<double>(points.front()) / 1.3);
  const double high = std::log(static_cast<double>(points.back()) * 1.3);
  std::vector<std::pair<double, double>> outline;
  for (int i = 0; i <= 2 * kSteps + 1; ++i) {
    const bool back = i > kSteps;
    const double at = static_cast<double>(back ? 2 * kSteps + 1 - i : i) / kSteps;
    const double count = std::exp(low + at * (high - low));
    outline.emplace_back(scales.x(count), scales.y(1 + (back ? -1 : 1) / std::sqrt(count)));
  }
  drawing.path(outline, true, "band");
}

void draw_loads(Drawing& drawing, const Scales& scales, const Series& series, std::size_t index) {
  std::vector<std::pair<double, double>> most, least;
  for (const Row* row : series.rows) {
    const double x = scales.x(static_cast<double>(*row->points));
    for (const double load : row->loads)
      drawing.dot(x, scales.y(load), "dot " + colour('f', index));
    const auto [low, high] = std::ranges::minmax(row->loads);
    most.emplace_back(x, scales.y(high));
    least.emplace_back(x, scales.y(low));
  }
  drawing.path(most, false, "line " + colour('s', index));
  drawing.path(least, false, "line " + colour('s', index));
}

// Draws the left plot; returns how high its legend reaches.
double draw_sweep(Drawing& drawing, const std::vector<Series>& all, double left) {
  std::vector<std::uint64_t> points;
  double highest = 1;
  for (const Series& series : all)
    for (const Row* row : series.rows)
      if (row->points) {
        points.push_back(*row->points);
        highest = std::max(highest, row->max_over_mean());
      }
  std::ranges::sort(points);
  points.erase(std::ranges::unique(points).begin(), points.end());
  const Scales scales(left, points, std::ceil(2 * highest + 0.1) / 2);

  drawing.text(left, 52, "More points, more even: the spread falls as 1/√V", "title");
  draw_band(drawing, scales, points);
  draw_axes(drawing, scales, left, points);
  double y = kTop + kPlotHeight + 66;
  drawing.box(left, y - 10, 16, 11, "band");
  drawing.text(left + 24, y, "1 ± 1/√V: the expected standard deviation", "small");
  std::size_t index = 0;
  for (const Series& series : all) {
    if (!series.rows.front()->points) continue;
    draw_loads(drawing, scales, series, index);
    y += kLegendRow;
    drawing.line(left, y - 4, left + 16, y - 4, "line " + colour('s', index));
    drawing.dot(left + 8, y - 4, colour('f', index));
    drawing.text(left + 24, y, series.scheme + ": each server a dot; lines: most and least loaded",
                 "small");
    ++index;
  }
  return y;
}

void draw_bar(Drawing& drawing, double left, double y, const Row& row) {
  std::string label = row.scheme;
  if (row.points) label += fmt::format(", {} point{}", *row.points, *row.points == 1 ? "" : "s");
  const double moved = kBarsWidth * row.moved_ratio();
  const double needless = kBarsWidth * row.needless_ratio();
  drawing.text(left - 10, y + 14, label, "", "end");
  drawing.box(left, y + 2, moved - needless, 16, "needed");
  drawing.box(left + moved - needless, y + 2, needless, 16, "needless");
  drawing.text(left + moved + 6, y + 14, fmt::format("{:.1f} %", 100 * row.moved_ratio()), "small");
}

// Draws the right plot, one bar for each scheme (of a sweep, the one of most points); returns how
// high its legend reaches.
double draw_moves(Drawing& drawing, const std::vector<Series>& all, double left) {
  drawing.text(left, 52, "Keys that moved", "title");
  const double height = std::max(kPlotHeight, kBarRow * static_cast<double>(all.size()) + 8);
  const double bottom = kTop + height;
  for (int i = 0; i <= 4; ++i) {
    const double x = left + kBarsWidth * i / 4;
    drawing.line(x, kTop, x, bottom, "grid");
    drawing.text(x, bottom + 19, fmt::format("{} %", 25 * i), "small", "middle");
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    draw_bar(drawing, left, kTop + 8 + kBarRow * static_cast<double>(i), *all[i].rows.back());
  const double minimum = all.front().rows.front()->minimum_ratio;
  const double x = left + kBarsWidth * minimum;
  drawing.line(x, kTop, x, bottom, "least");
  drawing.line(left, bottom, left + kBarsWidth, bottom, "axis");
  drawing.text(left + kBarsWidth / 2, bottom + 40, "share of all keys", "", "middle");
  const double y = bottom + 66;
  drawing.line(left, y - 4, left + 16, y - 4, "least");
  drawing.text(left + 24, y, fmt::format("the least that must move, {:.1f} %", 100 * minimum),
               "small");
  drawing.box(left, y + kLegendRow - 10, 16, 11, "needed");
  drawing.text(left + 24, y + kLegendRow, "to or from a server that changed", "small");
  drawing.box(left, y + 2 * kLegendRow - 10, 16, 11, "needless");
  drawing.text(left + 24, y + 2 * kLegendRow, "between servers that stayed: needless", "small");
  return y + 2 * kLegendRow;
}

}  // namespace

std::string picture(std::span<const Row> rows) {
  constexpr double kLeft = 72;
  const std::vector<Series> all = series_of(rows);
  const bool swept =
      std::ranges::any_of(rows, [](const Row& row) { return row.points.has_value(); });
  Drawing drawing;
  const Row& row = rows.front();
  drawing.text(kLeft, 26,
               fmt::format("{} keys on {} servers, then {}", row.keys, row.servers_before,
                           row.servers_after),
               "small");
  double low = 0;
  double left = kLeft;
  if (swept) {
    low = draw_sweep(drawing, all, left);
    left += kPlotWidth + 32;
  }
  left += kBarLabel;
  low = std::max(low, draw_moves(drawing, all, left));
  return drawing.finish(left + kBarsWidth + 64, low + 20);
}

}  // namespace clockwise::simulate
