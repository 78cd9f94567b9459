// The cases of tests/golden/memcached: what was sent to a server, and what it answered.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace clockwise::memcached::test {

struct Case {
  std::string sent;
  std::string answered;
};

struct Golden {
  std::uint32_t largest_value = 0;
  std::vector<Case> cases;
};

// In the files the characters of Latin-1 are octets; JSON has them in UTF-8.
inline std::string octets_of(std::string_view text) {
  std::string octets;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octet = static_cast<unsigned char>(text[i]);
    if (octet < 0x80) {
      octets += text[i];
    } else {
      octets += static_cast<char>(octet << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return octets;
}

// A text, or a list of texts and of pairs [text, times].
inline std::string sent_of(const boost::json::value& sent) {
  if (sent.is_string()) return octets_of(sent.as_string());
  std::string octets;
  for (const boost::json::value& part : sent.as_array()) {
    if (part.is_string()) {
      octets += octets_of(part.as_string());
      continue;
    }
    const std::string text = octets_of(part.at(0).as_string());
    for (std::int64_t times = part.at(1).as_int64(); times > 0; --times) octets += text;
  }
  return octets;
}

inline Golden golden(const std::string& name) {
  std::ifstream file(CLOCKWISE_SOURCE_DIR "/tests/golden/memcached/" + name + ".json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const boost::json::value whole = boost::json::parse(text);
  Golden result;
  result.largest_value = whole.at("largest_value").to_number<std::uint32_t>();
  for (const boost::json::value& one : whole.at("cases").as_array()) {
    result.cases.push_back({sent_of(one.at(0)), octets_of(one.at(1).as_string())});
  }
  return result;
}

}  // namespace clockwise::memcached::test
