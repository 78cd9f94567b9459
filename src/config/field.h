// The strict walk: from a tree of text to typed values, with every problem reported at its place.
//
// A Field is one value and the path to it; a MapReader takes a map apart key by key and reports
// what nobody asked for. A value that is wrong leaves the default in place, so that the walk goes
// on and finds the other problems too.
//
//   MapReader map(field);
//   map.read("connect", duration(timeouts.connect, 1ms));
//   map.finish();
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "config/node.h"
#include "config/report.h"
#include "config/values.h"

namespace clockwise::config {

// What every step of the walk through one file needs.
struct Reading {
  const Source& source;
  Report& report;
  const Environment& environment;
};

struct Scalar {
  std::string text;     // variables substituted; one printable line
  bool quoted = false;  // written as text, so it is no number, `on` or `off`
};

// Quoted for a message: one line, not too long, unable to pass for something else.
[[nodiscard]] std::string quoted(std::string_view text);

class Field {
 public:
  Field(const Reading& reading, const Node& node, std::string path, Place key)
      : reading_(&reading), node_(&node), path_(std::move(path)), key_(key) {}

  [[nodiscard]] const Node& node() const noexcept { return *node_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Reading& reading() const noexcept { return *reading_; }
  // The value; where none is written, its key.
  [[nodiscard]] Place place() const noexcept { return node_->written ? node_->place : key_; }
  [[nodiscard]] Place key_place() const noexcept { return key_; }

  // `PATH: "VALUE" RULE` at the value.
  void error(std::string_view rule) const;
  // `PATH: MESSAGE` at the value, or at another place of the same file; `below` goes on with the
  // path.
  void problem(std::string_view message) const { problem_at(place(), message); }
  void problem_at(Place place, std::string_view message, std::string_view below = {}) const;
  void warn_at(Place place, std::string_view message, std::string_view below = {}) const;

  // The scalar that stands here; nothing (and a problem) for a null, a list or a map, and where a
  // variable is missing.
  [[nodiscard]] std::optional<Scalar> scalar() const;

  // The items of a list, each with its path; a problem when it is no list.
  [[nodiscard]] std::optional<std::vector<Field>> items() const;

  [[nodiscard]] Field child(const Entry& entry) const;

 private:
  [[nodiscard]] std::string shown() const;

  const Reading* reading_;
  const Node* node_;
  std::string path_;
  Place key_;
};

class MapReader {
 public:
  // Reports a value that is no map (it reads as an empty one), doubled keys and merge keys.
  explicit MapReader(const Field& field);

  // Hands the value of a key to `read`, when the key is there.
  template <std::invocable<const Field&> Read>
  bool read(std::string_view key, Read&& read) {
    const std::optional<Field> found = take(key);
    if (found) read(*found);
    return found.has_value();
  }
  // The same; reports a missing key.
  template <std::invocable<const Field&> Read>
  bool require(std::string_view key, Read&& read) {
    const bool found = this->read(key, std::forward<Read>(read));
    if (!found) missing(key);
    return found;
  }
  // Hands every key that was not read yet, merge keys apart, and its value to `read`.
  void read_each(const std::function<void(const std::string& key, const Field&)>& read);
  // A key of the product that is refused here, whatever its value. Was it there?
  bool refuse(std::string_view key, std::string_view why = "is not supported yet");
  // Reports the keys that nobody read. The last call.
  void finish();

  [[nodiscard]] bool is_map() const noexcept { return is_map_; }
  void missing(std::string_view key) const;

 private:
  [[nodiscard]] std::optional<Field> take(std::string_view key);

  const Field& field_;
  bool is_map_;
  std::vector<std::string_view> known_;
  std::vector<bool> taken_;
};

// Readers of single values, for MapReader::read().

template <class T, class Parse>
auto value(T& out, Parse parse) {
  return [&out, parse](const Field& field) {
    const std::optional<Scalar> scalar = field.scalar();
    if (!scalar) return;
    if (const auto parsed = parse(scalar->text))
      out = static_cast<T>(*parsed);
    else
      field.error(parsed.error().message);
  };
}

// As value(), for what YAML writes without quotes; a number in quotes is text.
template <class T, class Parse>
auto number_value(T& out, Parse parse) {
  return [&out, parse](const Field& field) {
    const std::optional<Scalar> scalar = field.scalar();
    if (!scalar) return;
    const auto parsed = parse(scalar->text);
    if (!parsed)
      field.error(parsed.error().message);
    else if (scalar->quoted)
      field.error("is text; write the number without quotes");
    else
      out = static_cast<T>(*parsed);
  };
}

template <class T>
auto integer(T& out, std::uint64_t low, std::uint64_t high) {
  return number_value(out, [=](std::string_view text) { return parse_integer(text, low, high); });
}

inline auto number(double& out, double low, double high) {
  return number_value(out, [=](std::string_view text) { return parse_number(text, low, high); });
}

inline auto duration(milliseconds& out, milliseconds low) {
  return value(out, [=](std::string_view text) { return parse_duration(text, low); });
}

template <class T>
auto size(T& out, std::uint64_t low, std::uint64_t high) {
  return value(out, [=](std::string_view text) { return parse_size(text, low, high); });
}

inline auto share(double& out) { return value(out, parse_share); }

inline auto name(std::string& out) { return value(out, parse_name); }

inline auto address(Address& out, PortRule rule) {
  return value(out, [=](std::string_view text) { return parse_address(text, rule); });
}

// Any one line of text; empty only where `may_be_empty`.
enum class Empty { allowed, refused };
void read_text(const Field& field, std::string& out, Empty empty);
inline auto text(std::string& out, Empty empty) {
  return [&out, empty](const Field& field) { read_text(field, out, empty); };
}

// One of `known`, which are each a `kind`: "pool".
void read_reference(const Field& field, std::string_view kind,
                    std::span<const std::string_view> known, std::string& out);

// true, false, on or off; true and false in quotes are text.
void read_switch(const Field& field, bool& out);
inline auto on_off(bool& out) {
  return [&out](const Field& field) { read_switch(field, out); };
}

// `off`, or an unquoted `false`.
[[nodiscard]] bool is_off(const Field& field);

// "a, b or c".
[[nodiscard]] std::string list_of(std::span<const std::string_view> words);

// One word of a list. A word without a value is known, but not supported yet.
template <class T>
struct Choice {
  std::string_view word;
  std::optional<T> value;
};

void report_choice(const Field& field, std::string_view word, bool known,
                   std::span<const std::string_view> words);

template <class T, std::size_t N>
auto choice(T& out, const std::array<Choice<T>, N>& choices) {
  return [&out, choices](const Field& field) {
    const std::optional<Scalar> scalar = field.scalar();
    if (!scalar) return;
    std::array<std::string_view, N> words;
    bool known = false;
    for (std::size_t i = 0; i < N; ++i) {
      words[i] = choices[i].word;
      if (choices[i].word != scalar->text) continue;
      known = true;
      if (choices[i].value) {
        out = *choices[i].value;
        return;
      }
    }
    report_choice(field, scalar->text, known, words);
  };
}

// Settings of later releases: what they are when unused is accepted, all else is refused.

void only_off(const Field& field);         // off
void only_empty_text(const Field& field);  // ""
void only_word(const Field& field, std::string_view word);
void only_number(const Field& field, std::string_view number);
inline auto only(std::string_view word) {
  return [word](const Field& field) { only_word(field, word); };
}
inline auto only(std::uint64_t value) {
  return [value](const Field& field) { only_number(field, std::to_string(value)); };
}

}  // namespace clockwise::config
