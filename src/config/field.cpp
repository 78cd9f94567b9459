#include "config/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "config/substitute.h"
#include "config/utf8.h"

namespace clockwise::config {
namespace {

constexpr std::size_t kShownCharacters = 80;
constexpr std::string_view kMergeKey = "<<";

std::string joined(std::string_view path, std::string_view key) {
  const std::string step = parse_name(key) ? std::string(key) : quoted(key);
  return path.empty() ? step : fmt::format("{}.{}", path, step);
}

std::string prefixed(std::string_view path, std::string_view below, std::string_view message) {
  const bool bare = path.empty() && below.empty();
  return fmt::format("{}{}{}{}", path, below, bare ? "" : ": ", message);
}

}  // namespace

std::string list_of(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0, shown = 0; at < text.size(); ++shown) {
    if (shown == kShownCharacters) return out + "…\"";
    const utf8::Decoded next = utf8::decode(text.substr(at));
    if (next.valid && utf8::is_printable(next.code))
      out += text.substr(at, next.length);
    else
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(next.valid ? next.code : 0xff));
    at += next.length;
  }
  return out + "\"";
}

std::string Field::shown() const {
  switch (node_->kind) {
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::null:
      return "null";
    case Kind::scalar:
      break;
  }
  const auto replaced = substitute(node_->text, reading_->environment);
  if (!replaced || !replaced->changed) return quoted(node_->text);
  return fmt::format("{} (from {})", quoted(replaced->text), quoted(node_->text));
}

void Field::error(std::string_view rule) const { problem(fmt::format("{} {}", shown(), rule)); }

void Field::problem_at(Place place, std::string_view message, std::string_view below) const {
  if (reading_->report.is_full()) return;
  reading_->report.error(reading_->source.problem(place, prefixed(path_, below, message)));
}

void Field::warn_at(Place place, std::string_view message, std::string_view below) const {
  if (reading_->report.is_full_of_warnings()) return;
  reading_->report.warning(reading_->source.problem(place, prefixed(path_, below, message)));
}

std::optional<Scalar> Field::scalar() const {
  if (node_->kind == Kind::null) {
    problem("has no value");
    return std::nullopt;
  }
  if (node_->kind != Kind::scalar) {
    error("is not a single value");
    return std::nullopt;
  }
  const auto replaced = substitute(node_->text, reading_->environment);
  if (!replaced) {
    problem(replaced.error().message);
    return std::nullopt;
  }
  if (!utf8::is_one_line(replaced->text)) {
    problem("holds a line break or another control character");
    return std::nullopt;
  }
  // In a flow map a variable must stand in quotes; its value is no less a number for that.
  return Scalar{replaced->text, node_->quoted && !replaced->changed};
}

std::optional<std::vector<Field>> Field::items() const {
  if (node_->kind == Kind::null) {
    problem("has no value; a list is expected");
    return std::nullopt;
  }
  if (node_->kind != Kind::sequence) {
    error("is not a list");
    return std::nullopt;
  }
  std::vector<Field> fields;
  fields.reserve(node_->items.size());
  for (std::size_t i = 0; i < node_->items.size(); ++i)
    fields.emplace_back(*reading_, *node_->items[i], fmt::format("{}[{}]", path_, i),
                        node_->items[i]->place);
  return fields;
}

Field Field::child(const Entry& entry) const {
  return Field(*reading_, *entry.value, joined(path_, entry.key), entry.place);
}

MapReader::MapReader(const Field& field) : field_(field), is_map_(field.node().kind == Kind::map) {
  if (!is_map_) {
    if (field.node().kind == Kind::null)
      field.problem("has no value; a map of settings is expected");
    else
      field.error("is not a map of settings");
    return;
  }
  const std::vector<Entry>& entries = field.node().entries;
  taken_.resize(entries.size());
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto [first, fresh] = seen.emplace(entries[i].key, entries[i].place);
    if (fresh) continue;
    taken_[i] = true;
    field.child(entries[i])
        .problem_at(entries[i].place, fmt::format("duplicate key {}, already set on line {}",
                                                  quoted(entries[i].key), first->second.line));
  }
}

std::optional<Field> MapReader::take(std::string_view key) {
  known_.push_back(key);
  if (!is_map_) return std::nullopt;
  const std::vector<Entry>& entries = field_.node().entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key != key || taken_[i]) continue;
    taken_[i] = true;
    return field_.child(entries[i]);
  }
  return std::nullopt;
}

void MapReader::missing(std::string_view key) const {
  if (!is_map_) return;
  const std::vector<Entry>& entries = field_.node().entries;
  field_.problem_at(entries.empty() ? field_.place() : entries.front().place,
                    fmt::format("the key \"{}\" is missing", key));
}

bool MapReader::refuse(std::string_view key, std::string_view why) {
  const std::optional<Field> found = take(key);
  if (found) found->problem_at(found->key_place(), why);
  known_.pop_back();  // never suggested
  return found.has_value();
}

void MapReader::read_each(const std::function<void(const std::string&, const Field&)>& read) {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const Entry& entry = field_.node().entries[i];
    if (taken_[i] || entry.key == kMergeKey) continue;
    taken_[i] = true;
    read(entry.key, field_.child(entry));
  }
}

void MapReader::finish() {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    if (field_.reading().report.is_full()) return;
    const Entry& entry = field_.node().entries[i];
    const std::string message =
        entry.key == kMergeKey
            ? "merge keys (<<) are not supported: write the settings out"
            : fmt::format("unknown key {}{}", quoted(entry.key), did_you_mean(entry.key, known_));
    field_.child(entry).problem_at(entry.place, message);
  }
}

void read_text(const Field& field, std::string& out, Empty empty) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (scalar->text.empty() && empty == Empty::refused)
    field.problem("is empty");
  else
    out = scalar->text;
}

void read_reference(const Field& field, std::string_view kind,
                    std::span<const std::string_view> known, std::string& out) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  out = scalar->text;
  if (std::ranges::find(known, out) == known.end())
    field.error(fmt::format("is not a {}{}", kind, did_you_mean(out, known)));
}

void read_switch(const Field& field, bool& out) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  const std::string_view word = scalar->text;
  if (word == "on" || (word == "true" && !scalar->quoted))
    out = true;
  else if (word == "off" || (word == "false" && !scalar->quoted))
    out = false;
  else
    field.error("is not true or false, without quotes");
}

bool is_off(const Field& field) {
  const Node& node = field.node();
  if (node.kind != Kind::scalar) return false;
  const auto replaced = substitute(node.text, field.reading().environment);
  return replaced && (replaced->text == "off" || (replaced->text == "false" && !node.quoted));
}

void report_choice(const Field& field, std::string_view word, bool known,
                   std::span<const std::string_view> words) {
  if (known)
    field.error("is not supported yet");
  else if (const std::string_view near = closest(word, words); !near.empty())
    field.error(fmt::format("is not {}, did you mean \"{}\"?", list_of(words), near));
  else
    field.error(fmt::format("is not {}", list_of(words)));
}

void only_off(const Field& field) {
  if (!is_off(field)) field.error("is not supported yet; the only value is off");
}

void only_word(const Field& field, std::string_view word) {
  const std::optional<Scalar> scalar = field.scalar();
  if (scalar && scalar->text != word)
    field.error(fmt::format("is not supported yet; the only value is {}", word));
}

void only_number(const Field& field, std::string_view number) {
  const std::optional<Scalar> scalar = field.scalar();
  if (scalar && scalar->text == number && scalar->quoted)
    field.error("is text; write the number without quotes");
  else if (scalar)
    only_word(field, number);
}

void only_empty_text(const Field& field) {
  const std::optional<Scalar> scalar = field.scalar();
  if (scalar && !scalar->text.empty()) field.error("is not supported yet; the only value is \"\"");
}

}  // namespace clockwise::config
