// A second reader of HTTP/1.1, written to be obviously right and not to be fast: it takes whole
// messages line by line and knows no state between calls. What src/http decides is held against it.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/head.h"

namespace clockwise::fuzz::reference {

enum class State : std::uint8_t { incomplete, refused, complete };

struct Message {
  State state = State::incomplete;
  std::size_t size = 0;  // of the head
  int minor = 1;
  std::vector<std::pair<std::string, std::string>> fields;
  http::Body body;
  bool keep_alive = true;
  std::string method;
  std::string target;
  std::string uri;  // path and query of the target
  int status = 0;

  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
};

inline std::string lower(std::string text) {
  for (char& octet : text) {
    if (octet >= 'A' && octet <= 'Z') octet = static_cast<char>(octet - 'A' + 'a');
  }
  return text;
}

inline std::vector<std::string> Message::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : fields) {
    if (lower(key) == name) values.push_back(value);
  }
  return values;
}

inline bool one_of(char octet, std::string_view set) {
  return set.find(octet) != std::string_view::npos;
}
inline bool is_digit(char octet) { return octet >= '0' && octet <= '9'; }
inline bool is_alnum(char octet) {
  return is_digit(octet) || (octet >= 'a' && octet <= 'z') || (octet >= 'A' && octet <= 'Z');
}
inline bool is_tchar(char octet) { return is_alnum(octet) || one_of(octet, "!#$%&'*+-.^_`|~"); }
inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_tchar);
}
inline bool is_control(char octet) {
  const auto value = static_cast<unsigned char>(octet);
  return value < 0x20 || value == 0x7f;
}
inline bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char octet) { return octet == '\t' || !is_control(octet); });
}

inline std::string trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char octet : text) {
    if (octet == separator) {
      parts.emplace_back();
    } else {
      parts.back() += octet;
    }
  }
  return parts;
}

// 1*DIGIT, at most 2^63-1.
inline std::optional<std::uint64_t> number(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  const std::size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
  const std::string digits(text.substr(first));
  const std::string most = "9223372036854775807";
  if (digits.size() > most.size() || (digits.size() == most.size() && digits > most)) {
    return std::nullopt;
  }
  return std::stoull(digits);
}

// RFC 3986 3.2 without userinfo, zones and ",".
inline bool is_authority(const std::string& text) {
  std::string host = text;
  std::string port;
  const bool bracketed = text.starts_with('[');
  const std::size_t colon = text.find(':', bracketed ? std::min(text.find(']'), text.size()) : 0);
  if (colon != std::string::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (!port.empty() && (!number(port) || *number(port) > 65535)) return false;
  }
  if (host.empty()) return false;
  if (bracketed) {
    in6_addr address;
    if (host.back() != ']' || host.find('\0') != std::string::npos) return false;
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address) == 1;
  }
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] == '%') {
      if (host.size() - i < 3 || std::isxdigit(static_cast<unsigned char>(host[i + 1])) == 0 ||
          std::isxdigit(static_cast<unsigned char>(host[i + 2])) == 0) {
        return false;
      }
    } else if (!is_alnum(host[i]) && !one_of(host[i], "-._~!$&'()*+;=")) {
      return false;
    }
  }
  return true;
}

// One line without its CRLF; nothing when it has not ended. `bad` when it ends in a bare LF.
inline std::optional<std::string> take_line(std::string_view text, std::size_t& at, bool& bad) {
  const std::size_t feed = text.find('\n', at);
  if (feed == std::string_view::npos) return std::nullopt;
  std::string line(text.substr(at, feed - at));
  at = feed + 1;
  bad = !line.ends_with('\r');
  if (!bad) line.pop_back();
  return line;
}

// The field lines and the blank one behind them.
inline State read_fields(std::string_view text, std::size_t& at, Message& message) {
  while (true) {
    bool bad = false;
    const auto line = take_line(text, at, bad);
    if (!line) return State::incomplete;
    if (bad) return State::refused;
    if (line->empty()) return State::complete;
    const std::size_t colon = line->find(':');
    if (colon == std::string::npos || !is_token(line->substr(0, colon))) return State::refused;
    if (!is_field_value(line->substr(colon + 1))) return State::refused;
    message.fields.emplace_back(line->substr(0, colon), trim(line->substr(colon + 1)));
  }
}

inline void read_connection(Message& message) {
  bool close = false;
  bool keep = false;
  for (const std::string& value : message.all("connection")) {
    for (const std::string& option : split(value, ',')) {
      close |= lower(trim(option)) == "close";
      keep |= lower(trim(option)) == "keep-alive";
    }
  }
  message.keep_alive = !close && (message.minor > 0 || keep);
}

inline State read_request_target(Message& message) {
  const std::string& target = message.target;
  if (message.method == "CONNECT" || message.method == "TRACE") return State::refused;
  message.uri = target;
  if (target.starts_with('/')) return State::complete;
  if (target == "*") return message.method == "OPTIONS" ? State::complete : State::refused;
  const std::string start = lower(target.substr(0, 8));
  const std::size_t scheme = start.starts_with("http://") ? 7 : start == "https://" ? 8 : 0;
  if (scheme == 0) return State::refused;
  const std::size_t path = std::min(target.find_first_of("/?", scheme), target.size());
  if (!is_authority(target.substr(scheme, path - scheme))) return State::refused;
  message.uri = target.substr(path);
  if (message.uri.empty()) message.uri = message.method == "OPTIONS" ? "*" : "/";
  if (message.uri.starts_with('?')) message.uri.insert(0, "/");
  return State::complete;
}

inline State judge_request(Message& message) {
  const auto hosts = message.all("host");
  const auto lengths = message.all("content-length");
  const auto codings = message.all("transfer-encoding");
  if (hosts.size() > 1 || lengths.size() > 1 || codings.size() > 1) return State::refused;
  if (hosts.empty() && message.minor > 0) return State::refused;
  if (!hosts.empty() && !hosts[0].empty() && !is_authority(hosts[0])) return State::refused;
  if (!codings.empty()) {
    if (message.minor == 0 || !lengths.empty() || lower(codings[0]) != "chunked") {
      return State::refused;
    }
    message.body.kind = http::BodyKind::chunked;
  } else if (!lengths.empty()) {
    if (!number(lengths[0])) return State::refused;
    message.body = {http::BodyKind::length, *number(lengths[0])};
  }
  for (const std::string& expectation : message.all("expect")) {
    if (lower(expectation) != "100-continue") return State::refused;
  }
  if (message.method == "OPTIONS") {
    const auto hops = message.all("max-forwards");
    if (hops.size() > 1 || (hops.size() == 1 && !number(hops[0]))) return State::refused;
  }
  read_connection(message);
  return State::complete;
}

// `text` begins where a request must begin; empty lines before it are the caller's to skip.
inline Message read_request(std::string_view text) {
  Message message;
  const auto end = [&](State state) {
    message.state = state;
    return message;
  };
  if (text.empty() || text == "\r") return end(State::incomplete);
  if (!is_tchar(text[0])) return end(State::refused);
  std::size_t at = 0;
  bool bad = false;
  const auto line = take_line(text, at, bad);
  if (!line) return end(State::incomplete);
  const auto words = split(*line, ' ');
  if (bad || words.size() != 3 || !is_token(words[0]) || words[1].empty()) {
    return end(State::refused);
  }
  if (std::any_of(words[1].begin(), words[1].end(),
                  [](char octet) { return is_control(octet) || octet == '#'; })) {
    return end(State::refused);
  }
  const std::string& version = words[2];
  if (version.size() != 8 || !version.starts_with("HTTP/1.") || !is_digit(version[7])) {
    return end(State::refused);
  }
  message.method = words[0];
  message.target = words[1];
  message.minor = version[7] == '0' ? 0 : 1;
  if (read_request_target(message) == State::refused) return end(State::refused);
  const State fields = read_fields(text, at, message);
  if (fields != State::complete) return end(fields);
  message.size = at;
  return end(judge_request(message));
}

inline State judge_response(Message& message, bool to_head) {
  const auto lengths = message.all("content-length");
  const auto codings = message.all("transfer-encoding");
  if (lengths.size() > 1 || codings.size() > 1) return State::refused;
  message.body.kind = http::BodyKind::until_close;
  if (!lengths.empty()) {
    if (!number(lengths[0])) return State::refused;
    message.body = {http::BodyKind::length, *number(lengths[0])};
  }
  if (!codings.empty()) {
    const std::string coding = lower(codings[0]);
    const std::vector<std::string> known{"gzip",     "x-gzip",   "deflate",
                                         "identity", "compress", "x-compress"};
    if (message.minor == 0) return State::refused;
    if (coding == "chunked") {
      message.body = {http::BodyKind::chunked, 0};
    } else if (!lengths.empty() || coding.empty() ||
               coding.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos ||
               coding.find("chunk") != std::string::npos ||
               std::find(known.begin(), known.end(), coding) != known.end()) {
      return State::refused;
    }
  }
  if (to_head || message.status < 200 || message.status == 204 || message.status == 304) {
    message.body = {};
  }
  read_connection(message);
  message.keep_alive &= message.body.kind != http::BodyKind::until_close;
  return State::complete;
}

inline Message read_response(std::string_view text, bool to_head) {
  Message message;
  const auto end = [&](State state) {
    message.state = state;
    return message;
  };
  const std::string_view prefix = "HTTP/1.";
  if (text.substr(0, prefix.size()) != prefix.substr(0, text.size())) return end(State::refused);
  std::size_t at = 0;
  bool bad = false;
  const auto line = take_line(text, at, bad);
  if (!line) return end(State::incomplete);
  // HTTP/1.1 200[ reason]
  if (bad || line->size() < 12 || !is_digit((*line)[7]) || (*line)[8] != ' ' ||
      (line->size() > 12 && (*line)[12] != ' ') || !is_field_value(line->substr(9))) {
    return end(State::refused);
  }
  const auto status = number(line->substr(9, 3));
  if (!status || *status < 100 || *status > 599) return end(State::refused);
  message.status = static_cast<int>(*status);
  message.minor = (*line)[7] == '0' ? 0 : 1;
  const State fields = read_fields(text, at, message);
  if (fields != State::complete) return end(fields);
  message.size = at;
  return end(judge_response(message, to_head));
}

struct Chunks {
  State state = State::incomplete;
  std::size_t size = 0;
  std::string data;
};

// *( BWS ";" BWS name [ BWS "=" BWS value ] ) to the end of the line.
inline bool are_extensions(std::string_view text) {
  const auto blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  };
  const auto token = [&] {
    const auto* const end = std::find_if_not(text.begin(), text.end(), is_tchar);
    const bool found = end != text.begin();
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
    return found;
  };
  const auto quoted = [&] {
    text.remove_prefix(1);
    while (!text.empty() && text[0] != '"') {
      if (text[0] == '\\') text.remove_prefix(1);
      if (text.empty() || (text[0] != '\t' && is_control(text[0]))) return false;
      text.remove_prefix(1);
    }
    if (text.empty()) return false;
    text.remove_prefix(1);
    return true;
  };
  while (!text.empty()) {
    blanks();
    if (!text.starts_with(';')) return false;
    text.remove_prefix(1);
    blanks();
    if (!token()) return false;
    const std::string_view behind_name = text;
    blanks();
    if (!text.starts_with('=')) {
      text = behind_name;
      continue;
    }
    text.remove_prefix(1);
    blanks();
    if (text.starts_with('"') ? !quoted() : !token()) return false;
  }
  return true;
}

inline Chunks read_chunks(std::string_view text) {
  constexpr std::size_t kMostTrailers = 100;
  Chunks chunks;
  const auto end = [&](State state) {
    chunks.state = state;
    return chunks;
  };
  std::size_t at = 0;
  bool bad = false;
  while (true) {
    const auto line = take_line(text, at, bad);
    if (!line) return end(State::incomplete);
    std::size_t digits = 0;
    while (digits < line->size() && std::isxdigit(static_cast<unsigned char>((*line)[digits]))) {
      ++digits;
    }
    if (bad || digits == 0 || digits > 16 || !are_extensions(line->substr(digits))) {
      return end(State::refused);
    }
    const std::uint64_t size = std::stoull(line->substr(0, digits), nullptr, 16);
    if (size > INT64_MAX) return end(State::refused);
    if (size == 0) break;
    if (text.size() - at < size) {
      chunks.data += text.substr(at);
      return end(State::incomplete);
    }
    chunks.data += text.substr(at, size);
    at += size;
    if (text.substr(at, 2) != std::string_view("\r\n").substr(0, text.size() - at)) {
      return end(State::refused);
    }
    if (text.size() - at < 2) return end(State::incomplete);
    at += 2;
  }
  Message trailers;
  const State state = read_fields(text, at, trailers);
  if (trailers.fields.size() > kMostTrailers) return end(State::refused);
  chunks.size = at;
  return end(state);
}

}  // namespace clockwise::fuzz::reference
