#include "upstream/json.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <charconv>
#include <cmath>
#include <iterator>

#include "config/utf8.h"

namespace clockwise::upstream {

namespace {

namespace json = boost::json;

class Writer {
 public:
  void write(const json::value& value) {
    switch (value.kind()) {
      case json::kind::null:
        out_ += "null";
        break;
      case json::kind::bool_:
        out_ += value.get_bool() ? "true" : "false";
        break;
      case json::kind::int64:
        fmt::format_to(end(), "{}", value.get_int64());
        break;
      case json::kind::uint64:
        fmt::format_to(end(), "{}", value.get_uint64());
        break;
      case json::kind::double_:
        write_number(value.get_double());
        break;
      case json::kind::string:
        write_string(value.get_string());
        break;
      case json::kind::array:
        write_array(value.get_array());
        break;
      case json::kind::object:
        write_object(value.get_object());
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  std::back_insert_iterator<std::string> end() { return std::back_inserter(out_); }

  // The shortest text that gives the same number again; without an exponent unless it would be
  // long.
  void write_number(double number) {
    if (!std::isfinite(number)) {
      out_ += "null";
      return;
    }
    const double size = std::abs(number);
    const bool fixed = size == 0 || (size > 1e-20 && size < 1e20);
    std::array<char, 64> text;
    const auto done =
        std::to_chars(text.data(), text.data() + text.size(), number,
                      fixed ? std::chars_format::fixed : std::chars_format::scientific);
    out_.append(text.data(), done.ptr);
  }

  void write_string(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const auto [code, length, valid] = config::utf8::decode(text);
      if (!valid)
        out_ += "\\ufffd";
      else if (length == 1)
        write_ascii(text[0]);
      else
        out_ += text.substr(0, length);
      text.remove_prefix(length);
    }
    out_ += '"';
  }

  void write_ascii(char c) {
    if (c == '"' || c == '\\')
      out_.append(1, '\\').append(1, c);
    else if (c == '\n')
      out_ += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      fmt::format_to(end(), "\\u{:04x}", static_cast<unsigned>(c));
    else
      out_ += c;
  }

  void write_array(const json::array& array) {
    out_ += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out_ += ", ";
      write(array[i]);
    }
    out_ += ']';
  }

  void write_object(const json::object& object) {
    out_ += '{';
    for (bool first = true; const auto& member : object) {
      if (!first) out_ += ", ";
      first = false;
      write_string(member.key());
      out_ += ": ";
      write(member.value());
    }
    out_ += '}';
  }

  std::string out_;
};

}  // namespace

std::string to_text(const json::value& value) {
  Writer writer;
  writer.write(value);
  return writer.take();
}

}  // namespace clockwise::upstream
