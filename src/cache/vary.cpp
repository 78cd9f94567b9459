#include "cache/vary.h"

#include <algorithm>

namespace clockwise::cache {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), http::lower);
  return out;
}

// In thousandths; what is no weight counts as the whole, so that it stays apart from what is.
int weight_of(std::string_view parameters) {
  int weight = 1000;
  http::each_piece(parameters, ';', [&](std::string_view piece) {
    piece = http::trim(piece);
    if (piece.size() < 3 || http::lower(piece[0]) != 'q' || piece[1] != '=') return true;
    const std::string_view value = piece.substr(2);
    weight = value.front() == '1' ? 1000 : 0;
    int step = 100;
    for (std::size_t i = 2; i < std::min<std::size_t>(value.size(), 5); ++i, step /= 10)
      if (value.front() != '1' && http::is(value[i], http::kDigit))
        weight += (value[i] - '0') * step;
    return false;
  });
  return weight;
}

struct Weighted {
  int weight;
  std::string word;
};

// The members of a list such as Accept-Language, the heaviest first, equal ones by their word.
std::vector<Weighted> by_weight(const Lines& lines) {
  std::vector<Weighted> words;
  for (const std::string_view line : lines)
    http::each_member(line, [&](std::string_view member) {
      const std::size_t end = member.find(';');
      const std::string_view word = http::trim(member.substr(0, end));
      if (!word.empty())
        words.push_back({end == std::string_view::npos ? 1000 : weight_of(member.substr(end + 1)),
                         lower(word)});
      return true;
    });
  std::ranges::sort(words, [](const Weighted& a, const Weighted& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.word < b.word;
  });
  return words;
}

std::string languages(const Lines& lines) {
  std::string out;
  for (const Weighted& word : by_weight(lines))
    out.append(word.word).append(";").append(std::to_string(word.weight)).append(",");
  return out;
}

// What is accepted, whatever is preferred: the origin chose once for all who accept the same.
std::string codings(const Lines& lines) {
  std::vector<std::string> accepted;
  for (Weighted& word : by_weight(lines)) {
    const bool refused = word.weight == 0;
    if (word.word == "x-gzip") word.word = "gzip";
    // Identity is accepted unless it is refused.
    if (refused != (word.word == "identity")) continue;
    accepted.push_back((refused ? "-" : "") + word.word);
  }
  std::ranges::sort(accepted);
  std::string out;
  for (const std::string& coding : accepted) out.append(coding).append(",");
  return out;
}

// All lines as one list, without blanks round its commas (RFC 9110 5.3).
std::string joined(const Lines& lines) {
  std::string out;
  for (const std::string_view line : lines) {
    if (!out.empty()) out += ',';
    bool first = true;
    http::each_member(line, [&](std::string_view member) {
      if (!first) out += ',';
      first = false;
      out += member;
      return true;
    });
  }
  return out;
}

Selector selector(std::string name, std::string_view request,
                  std::span<const http::FieldLine> fields) {
  Selector out;
  out.name = std::move(name);
  const Lines lines = lines_of(request, fields, out.name);
  out.present = !lines.empty();
  if (!out.present) return out;
  out.value = out.name == "accept-language"   ? languages(lines)
              : out.name == "accept-encoding" ? codings(lines)
                                              : joined(lines);
  return out;
}

}  // namespace

std::vector<Selector> selectors(const Lines& vary, std::string_view request,
                                std::span<const http::FieldLine> fields) {
  std::vector<std::string> names;
  for (const std::string_view line : vary)
    http::each_member(line, [&](std::string_view name) {
      if (!name.empty()) names.push_back(lower(name));
      return true;
    });
  std::ranges::sort(names);
  const auto doubled = std::ranges::unique(names);
  names.erase(doubled.begin(), doubled.end());
  std::vector<Selector> out;
  out.reserve(names.size());
  for (std::string& name : names) out.push_back(selector(std::move(name), request, fields));
  return out;
}

bool matches(std::span<const Selector> stored, std::string_view request,
             std::span<const http::FieldLine> fields) {
  return std::ranges::all_of(
      stored, [&](const Selector& one) { return selector(one.name, request, fields) == one; });
}

// No field holds a NUL.
std::string pack(std::span<const Selector> selectors) {
  std::string out;
  for (const Selector& one : selectors)
    out.append(one.name).append(1, '\0').append(one.present ? "+" : "-").append(one.value) += '\0';
  return out;
}

std::vector<Selector> unpack(std::string_view packed) {
  const auto next = [&] {
    const std::string_view part = packed.substr(0, packed.find('\0'));
    packed.remove_prefix(part.size() + 1);
    return part;
  };
  std::vector<Selector> out;
  while (!packed.empty()) {
    Selector& one = out.emplace_back();
    one.name = next();
    const std::string_view value = next();
    one.present = value.front() == '+';
    one.value = value.substr(1);
  }
  return out;
}

}  // namespace clockwise::cache
