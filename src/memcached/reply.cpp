#include "memcached/reply.h"

#include <algorithm>
#include <charconv>

#include "memcached/command.h"

namespace clockwise::memcached {
namespace {

struct Word {
  std::string_view text;
  ReplyKind kind;
};

// Lines that are one word.
constexpr Word kPlain[] = {
    {"END", ReplyKind::end},
    {"STORED", ReplyKind::stored},
    {"NOT_FOUND", ReplyKind::not_found},
    {"NOT_STORED", ReplyKind::not_stored},
    {"DELETED", ReplyKind::deleted},
    {"EXISTS", ReplyKind::exists},
    {"TOUCHED", ReplyKind::touched},
    {"OK", ReplyKind::ok},
    {"MN", ReplyKind::meta_noop},
    {"RESET", ReplyKind::reset},
};

// Meta answers that may have flags.
constexpr Word kMeta[] = {
    {"HD", ReplyKind::meta_done},      {"EN", ReplyKind::end},
    {"NF", ReplyKind::meta_not_found}, {"NS", ReplyKind::meta_not_stored},
    {"EX", ReplyKind::meta_exists},
};

// What has a text behind it.
constexpr Word kText[] = {
    {"STAT", ReplyKind::stat},
    {"VERSION", ReplyKind::version},
    {"ME", ReplyKind::meta_debug},
    {"ERROR", ReplyKind::error},
    {"CLIENT_ERROR", ReplyKind::client_error},
    {"SERVER_ERROR", ReplyKind::server_error},
};

// The part up to the next blank; takes both off `text`. `more`: there was a blank.
std::string_view next_field(std::string_view& text, bool& more) noexcept {
  const std::size_t end = text.find(' ');
  const std::string_view field = text.substr(0, end);
  more = end != std::string_view::npos;
  text.remove_prefix(more ? end + 1 : text.size());
  return field;
}

// Digits as a server prints them: no sign, no zero in front, no more than T holds.
template <class T>
bool read(std::string_view text, T& number) noexcept {
  if (text.empty() || (text.front() == '0' && text.size() > 1)) return false;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, number);
  return error == std::errc{} && stopped == end;
}

bool read_length(std::string_view text, std::uint32_t largest, std::uint32_t& length) noexcept {
  return read(text, length) && length <= largest;
}

// KEY FLAGS LENGTH [UNIQUE]
bool read_value(std::string_view text, std::uint32_t largest, Reply& reply) noexcept {
  reply.kind = ReplyKind::value;
  bool more = false;
  reply.key = next_field(text, more);
  if (reply.key.empty() || reply.key.size() > kMaxKey) return false;
  if (!read(next_field(text, more), reply.flags)) return false;
  if (!read_length(next_field(text, more), largest, reply.length)) return false;
  reply.has_unique = more;
  return !more || read(text, reply.number);
}

// Words with one blank between any two.
bool are_flags(std::string_view text) noexcept {
  return !text.empty() && text.front() != ' ' && text.back() != ' ' &&
         text.find("  ") == std::string_view::npos;
}

bool read_meta(std::string_view text, bool more, Reply& reply) noexcept {
  reply.rest = text;
  return !more || are_flags(text);
}

bool read_line(std::string_view text, std::uint32_t largest, Reply& reply) noexcept {
  bool more = false;
  const std::string_view word = next_field(text, more);
  if (word == "VALUE") return read_value(text, largest, reply);
  const auto is_it = [&](const Word& known) {
    reply.kind = known.kind;
    return known.text == word;
  };
  if (std::ranges::any_of(kPlain, is_it)) return !more;
  if (std::ranges::any_of(kMeta, is_it)) return read_meta(text, more, reply);
  if (std::ranges::any_of(kText, is_it)) {
    reply.rest = text;
    return !text.empty() || (is_error(reply.kind) && !more);
  }
  if (word == "VA") {
    reply.kind = ReplyKind::value;
    return more && read_length(next_field(text, more), largest, reply.length) &&
           read_meta(text, more, reply);
  }
  reply.kind = ReplyKind::number;
  return !more && read(word, reply.number);
}

}  // namespace

ReplyScan scan_reply(std::string_view octets, std::uint32_t largest_value, std::size_t& scanned,
                     Reply& reply) {
  const std::size_t end = octets.find('\n', scanned);
  if (std::min(end, octets.size()) >= kMaxReplyLine) return ReplyScan::bad;
  if (end == std::string_view::npos) {
    scanned = octets.size();
    return ReplyScan::more;
  }
  scanned = 0;
  if (end == 0 || octets[end - 1] != '\r') return ReplyScan::bad;
  reply = {};
  reply.size = static_cast<std::uint32_t>(end + 1);
  reply.line = octets.substr(0, end - 1);
  if (reply.line.find('\0') != std::string_view::npos) return ReplyScan::bad;
  return read_line(reply.line, largest_value, reply) ? ReplyScan::complete : ReplyScan::bad;
}

std::string_view meta_flag(std::string_view flags, char flag, bool& found) noexcept {
  while (!flags.empty()) {
    const std::string_view word = next_word(flags);
    found = word.starts_with(flag);
    if (found) return word.substr(1);
  }
  found = false;
  return {};
}

bool answers(Verb verb, const Reply& reply) noexcept {
  const ReplyKind kind = reply.kind;
  // VALUE names its key, VA does not.
  const bool meta_value = kind == ReplyKind::value && reply.key.empty();
  if (is_error(kind)) return true;
  switch (verb) {
    case Verb::get:
    case Verb::gat:
      return kind == ReplyKind::end ||
             (kind == ReplyKind::value && !meta_value && !reply.has_unique);
    case Verb::gets:
    case Verb::gats:
      return kind == ReplyKind::end || (kind == ReplyKind::value && reply.has_unique);
    case Verb::set:
    case Verb::add:
    case Verb::replace:
    case Verb::append:
    case Verb::prepend:
    case Verb::cas:
      return kind == ReplyKind::stored || kind == ReplyKind::not_stored ||
             kind == ReplyKind::exists || kind == ReplyKind::not_found;
    case Verb::remove:
      return kind == ReplyKind::deleted || kind == ReplyKind::not_found;
    case Verb::incr:
    case Verb::decr:
      return kind == ReplyKind::number || kind == ReplyKind::not_found;
    case Verb::touch:
      return kind == ReplyKind::touched || kind == ReplyKind::not_found;
    case Verb::meta_get:
      return meta_value || kind == ReplyKind::end || kind == ReplyKind::meta_done;
    case Verb::meta_set:
    case Verb::meta_delete:
    case Verb::meta_arithmetic:
      return kind == ReplyKind::meta_done || kind == ReplyKind::meta_not_stored ||
             kind == ReplyKind::meta_exists || kind == ReplyKind::meta_not_found ||
             (verb == Verb::meta_arithmetic && meta_value);
    case Verb::meta_debug:
      return kind == ReplyKind::meta_debug || kind == ReplyKind::end;
    case Verb::flush_all:
      return kind == ReplyKind::ok;
    case Verb::version:
      return kind == ReplyKind::version;
    default:
      return false;
  }
}

}  // namespace clockwise::memcached
