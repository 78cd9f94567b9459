#include "memcached/command.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include "memcached/base64.h"
#include "memcached/key.h"
#include "memcached/number.h"

namespace clockwise::memcached {
namespace {

constexpr std::string_view kError = "ERROR\r\n";
constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format\r\n";
constexpr std::string_view kBadExptime = "CLIENT_ERROR invalid exptime argument\r\n";
constexpr std::string_view kBadDelta = "CLIENT_ERROR invalid numeric delta argument\r\n";
constexpr std::string_view kBadDelete =
    "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
constexpr std::string_view kBadToken = "CLIENT_ERROR bad token in command line format\r\n";
constexpr std::string_view kBadFlag = "CLIENT_ERROR invalid flag\r\n";
constexpr std::string_view kDuplicateFlag = "CLIENT_ERROR duplicate flag\r\n";
constexpr std::string_view kBadOrDuplicateFlag = "CLIENT_ERROR invalid or duplicate flag\r\n";
constexpr std::string_view kBadBase64 = "CLIENT_ERROR error decoding key\r\n";
constexpr std::string_view kBadModeSize = "CLIENT_ERROR incorrect length for M token\r\n";
constexpr std::string_view kBadSetMode = "CLIENT_ERROR invalid mode for ms M token\r\n";
constexpr std::string_view kBadArithmeticMode = "CLIENT_ERROR invalid mode for ma M token\r\n";
constexpr std::string_view kBadInitial = "CLIENT_ERROR invalid numeric initial value\r\n";
constexpr std::string_view kBadMetaDelta = "CLIENT_ERROR invalid numeric delta value\r\n";
constexpr std::string_view kLongOpaque = "CLIENT_ERROR opaque token too long\r\n";
constexpr std::string_view kManyFlags = "CLIENT_ERROR options flags too long\r\n";
constexpr std::string_view kManyGetFlags = "CLIENT_ERROR options flags are too long\r\n";
constexpr std::string_view kTooLarge = "SERVER_ERROR object too large for cache\r\n";
constexpr std::string_view kLongLine = "CLIENT_ERROR line too long\r\n";
constexpr std::string_view kNothingFound = "END\r\n";

constexpr std::array<std::string_view, 25> kNames = {
    "get", "gets",   "gat",     "gats",  "set",       "add",       "replace", "append", "prepend",
    "cas", "delete", "incr",    "decr",  "touch",     "mg",        "ms",      "md",     "ma",
    "me",  "mn",     "version", "stats", "verbosity", "flush_all", "quit",
};
static_assert(kNames[static_cast<std::size_t>(Verb::quit)] == "quit");

// So many words of a line does a server look at, retrievals apart.
constexpr std::size_t kMaxWords = 23;
// Those of a meta command, its name and key among them.
constexpr std::size_t kMaxMetaWords = 19;
constexpr std::size_t kMaxOpaque = 32;  // with the O
constexpr std::int32_t kMaxLength = std::numeric_limits<std::int32_t>::max() - 2;

// mg, ms, md and ma.
constexpr bool has_flags(Verb verb) noexcept {
  return verb >= Verb::meta_get && verb <= Verb::meta_arithmetic;
}

std::optional<Verb> verb_of(std::string_view name) noexcept {
  const auto known = std::ranges::find(kNames, name);
  if (known == kNames.end()) return std::nullopt;
  return static_cast<Verb>(known - kNames.begin());
}

class Words {
 public:
  explicit Words(std::string_view line) noexcept : line_(line) {
    for (std::string_view rest = line; count_ < kMaxWords; ++count_) {
      const std::string_view word = next_word(rest);
      if (word.empty()) break;
      words_[count_] = word;
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept { return words_[i]; }
  [[nodiscard]] std::span<const std::string_view> from(std::size_t i) const noexcept {
    return std::span(words_).subspan(i, count_ - i);
  }
  // The line from a word on.
  [[nodiscard]] std::string_view text_from(std::size_t i) const noexcept {
    if (i >= count_) return {};
    return line_.substr(static_cast<std::size_t>(words_[i].data() - line_.data()));
  }
  [[nodiscard]] bool noreply() const noexcept { return words_[count_ - 1] == "noreply"; }

 private:
  std::string_view line_;
  std::array<std::string_view, kMaxWords> words_;
  std::size_t count_ = 0;
};

// Each reader of a verb's words gives back what a server says to them; empty: it takes them.
using Answer = std::string_view;

// KEY FLAGS EXPTIME LENGTH [UNIQUE] [noreply]
Answer read_storage(const Words& words, Command& command, Refusal& refusal,
                    std::uint32_t largest) noexcept {
  const std::size_t arguments = command.verb == Verb::cas ? 6 : 5;
  if (words.size() != arguments && words.size() != arguments + 1) return kError;
  command.noreply = words.noreply();
  command.key = words[1];
  std::int32_t exptime = 0;
  std::int32_t length = 0;
  if (command.key.size() > kMaxKey) return kBadFormat;
  if (!read_number(words[2], command.flags)) return kBadFormat;
  if (!read_number(words[3], exptime)) return kBadFormat;
  if (!read_length(words[4], length)) return kBadFormat;
  if (command.verb == Verb::cas && !read_number(words[5], command.number)) return kBadFormat;
  if (length < 0 || length > kMaxLength) return kBadFormat;
  command.exptime = exptime;
  command.length = static_cast<std::uint32_t>(length);
  if (command.length <= largest) return {};
  refusal.skip = std::uint64_t{command.length} + 2;
  refusal.deletes_key = command.verb == Verb::set;
  return kTooLarge;
}

// KEY [0] [noreply]: a time for which the key cannot be added again was there once.
Answer read_delete(const Words& words, Command& command) noexcept {
  if (words.size() < 2 || words.size() > 4) return kError;
  command.key = words[1];
  if (words.size() > 2) {
    command.noreply = words.noreply();
    const bool zero = words[2] == "0";
    const bool fine = words.size() == 3 ? zero || command.noreply : zero && command.noreply;
    if (!fine) return kBadDelete;
  }
  return command.key.size() > kMaxKey ? kBadFormat : Answer{};
}

// KEY NUMBER [noreply]
Answer read_change(const Words& words, Command& command) noexcept {
  if (words.size() != 3 && words.size() != 4) return kError;
  command.noreply = words.noreply();
  command.key = words[1];
  if (command.key.size() > kMaxKey) return kBadFormat;
  if (command.verb != Verb::touch) {
    return read_number(words[2], command.number) ? Answer{} : kBadDelta;
  }
  std::int32_t exptime = 0;
  if (!read_number(words[2], exptime)) return kBadExptime;
  command.exptime = exptime;
  return {};
}

// LEVEL [noreply]
Answer read_verbosity(const Words& words, Command& command) noexcept {
  if (words.size() != 2 && words.size() != 3) return kError;
  command.noreply = words.noreply();
  std::uint32_t level = 0;
  return read_number(words[1], level) ? Answer{} : kBadFormat;
}

// [DELAY] [noreply]
Answer read_flush(const Words& words, Command& command) noexcept {
  if (words.size() > 3) return kError;
  command.noreply = words.noreply();
  if (words.size() == (command.noreply ? 2 : 1)) return {};
  std::int32_t delay = 0;
  if (!read_number(words[1], delay)) return kBadExptime;
  command.exptime = delay;
  return {};
}

struct MetaFlags {
  char mode = 0;
  bool long_opaque = false;
};

// What is wrong with the value of one flag; empty: nothing.
Answer check_flag(std::string_view flag, Command& command, MetaFlags& flags) noexcept {
  const std::string_view value = flag.substr(1);
  std::uint64_t number = 0;
  std::int32_t seconds = 0;
  std::array<char, kMaxKey> decoded;
  switch (flag.front()) {
    case 'b':
      command.base64_key = true;
      return decode_base64(command.key, decoded.data()) == 0 ? kBadBase64 : Answer{};
    case 'C':
      return read_number(value, number) ? Answer{} : kBadToken;
    case 'D':
      return read_number(value, number) ? Answer{} : kBadMetaDelta;
    case 'F':
      return read_number(value, number) ? Answer{} : kBadFormat;
    case 'J':
      return read_number(value, number) ? Answer{} : kBadInitial;
    case 'M':
      if (value.size() != 1) return kBadModeSize;
      flags.mode = value.front();
      return {};
    case 'N':
    case 'R':
    case 'T':
      return read_number(value, seconds) ? Answer{} : kBadToken;
    case 'O':
      flags.long_opaque = flag.size() > kMaxOpaque;
      return {};
    case 'q':
      command.quiet = true;
      return {};
    default:
      return {};
  }
}

// A flag is known by its first octet, and all of them are looked at: of several mistakes the last
// one is named, but for a bad F, to which a server gives no name.
Answer check_flags(std::span<const std::string_view> words, Command& command,
                   MetaFlags& flags) noexcept {
  constexpr std::string_view kKnown = "bCcDFfhIJkLlMNOPqRsTtuv";
  std::bitset<127> seen;
  Answer answer;
  for (const std::string_view word : words) {
    const auto flag = static_cast<unsigned char>(word.front());
    if (flag >= seen.size() || seen[flag]) return kDuplicateFlag;
    seen[flag] = true;
    if (kKnown.find(word.front()) == std::string_view::npos) return kBadFlag;
    const Answer wrong = check_flag(word, command, flags);
    if (!wrong.empty() && (answer.empty() || flag != 'F')) answer = wrong;
  }
  return answer;
}

bool is_mode(Verb verb, char mode) noexcept {
  const std::string_view modes = verb == Verb::meta_set ? "EAPRS" : "ID+-";
  return mode == 0 || modes.find(mode) != std::string_view::npos;
}

// mg, md and ma: KEY FLAGS...
Answer read_meta(const Words& words, Command& command) noexcept {
  const bool get = command.verb == Verb::meta_get;
  if (words.size() < 2) return kError;
  command.key = words[1];
  command.rest = words.text_from(2);
  if (command.key.size() > kMaxKey) return kBadFormat;
  if (words.size() > kMaxMetaWords) return get ? kManyGetFlags : kManyFlags;
  MetaFlags flags;
  const Answer wrong = check_flags(words.from(2), command, flags);
  if (!wrong.empty()) return get ? wrong : kBadOrDuplicateFlag;
  if (command.verb == Verb::meta_arithmetic && !is_mode(command.verb, flags.mode)) {
    return kBadArithmeticMode;
  }
  return flags.long_opaque ? kLongOpaque : Answer{};
}

// KEY LENGTH FLAGS...
Answer read_meta_set(const Words& words, Command& command, Refusal& refusal,
                     std::uint32_t largest) noexcept {
  if (words.size() < 2) return kError;
  command.key = words[1];
  if (command.key.size() > kMaxKey || words.size() == 2) return kBadFormat;
  command.rest = words.text_from(3);
  if (words.size() > kMaxMetaWords) return kManyFlags;
  std::int32_t length = 0;
  if (!read_length(words[2], length) || length < 0 || length > kMaxLength) return kBadFormat;
  command.length = static_cast<std::uint32_t>(length);
  // From here on the length is known, and the block is thrown away with the line.
  refusal.skip = std::uint64_t{command.length} + 2;
  MetaFlags flags;
  const Answer wrong = check_flags(words.from(3), command, flags);
  if (!wrong.empty()) return wrong;
  if (!is_mode(command.verb, flags.mode)) return kBadSetMode;
  if (flags.long_opaque) return kLongOpaque;
  refusal.deletes_key = command.length > largest;
  return refusal.deletes_key ? kTooLarge : Answer{};
}

// KEY [b]
Answer read_meta_debug(const Words& words, Command& command) noexcept {
  if (words.size() < 2 || words[1].size() > kMaxKey) return kBadFormat;
  command.key = words[1];
  command.rest = words.text_from(2);
  command.base64_key = words.size() > 2 && words[2] == "b";
  std::array<char, kMaxKey> decoded;
  const bool fine = !command.base64_key || decode_base64(command.key, decoded.data()) > 0;
  return fine ? Answer{} : kBadFormat;
}

Answer read_words(const Words& words, Command& command, Refusal& refusal,
                  std::uint32_t largest) noexcept {
  switch (command.verb) {
    case Verb::remove:
      return read_delete(words, command);
    case Verb::incr:
    case Verb::decr:
    case Verb::touch:
      return read_change(words, command);
    case Verb::meta_get:
    case Verb::meta_delete:
    case Verb::meta_arithmetic:
      return read_meta(words, command);
    case Verb::meta_set:
      return read_meta_set(words, command, refusal, largest);
    case Verb::meta_debug:
      return read_meta_debug(words, command);
    case Verb::verbosity:
      command.rest = words.text_from(1);
      return read_verbosity(words, command);
    case Verb::flush_all:
      command.rest = words.text_from(1);
      return read_flush(words, command);
    case Verb::meta_noop:
    case Verb::version:
    case Verb::stats:
    case Verb::quit:
      command.rest = words.text_from(1);
      return {};
    default:
      return read_storage(words, command, refusal, largest);
  }
}

// [EXPTIME] KEY...
Answer read_retrieval(std::string_view words, Command& command) noexcept {
  const bool touches = command.verb == Verb::gat || command.verb == Verb::gats;
  std::string_view word = next_word(words);
  if (word.empty()) return kError;
  if (touches) {
    std::int32_t exptime = 0;
    if (!read_number(word, exptime)) return kBadExptime;
    command.exptime = exptime;
    word = next_word(words);
    if (word.empty()) return kNothingFound;
  }
  command.key = word;
  command.rest = words;
  for (; !word.empty(); word = next_word(words)) {
    if (word.size() > kMaxKey) return kBadFormat;
    ++command.keys;
  }
  return {};
}

Answer read_line(std::string_view line, Command& command, Refusal& refusal,
                 std::uint32_t largest) noexcept {
  std::string_view arguments = line;
  const std::optional<Verb> verb = verb_of(next_word(arguments));
  if (!verb) return kError;
  command.verb = *verb;
  if (is_retrieval(*verb)) return read_retrieval(arguments, command);
  return read_words(Words(line), command, refusal, largest);
}

void append_word(std::string_view word, std::string& out) {
  if (word.empty()) return;
  out += ' ';
  out += word;
}

template <class T>
void append_number(T number, std::string& out) {
  std::array<char, std::numeric_limits<T>::digits10 + 2> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  append_word({digits.data(), end}, out);
}

// The words behind the key that a server heeds.
void append_rest(const Command& command, std::string& out) {
  const Verb verb = command.verb;
  if (verb == Verb::meta_debug && command.base64_key) append_word("b", out);
  if (!has_flags(verb) && verb != Verb::stats && verb != Verb::verbosity) return;
  std::string_view words = command.rest;
  for (std::string_view word = next_word(words); !word.empty(); word = next_word(words)) {
    const bool quiet = has_flags(verb) && word.front() == 'q';
    const bool noreply = verb == Verb::verbosity && word == "noreply";
    if (!quiet && !noreply) append_word(word, out);
  }
}

// How long a line may be that begins so.
std::size_t longest_line(std::string_view octets) noexcept {
  std::string_view words = octets.substr(0, kMaxLine);
  const std::optional<Verb> verb = verb_of(next_word(words));
  return verb && is_retrieval(*verb) ? kMaxRetrievalLine : kMaxLine;
}

}  // namespace

bool is_repeatable(Verb verb) noexcept {
  return is_retrieval(verb) || verb == Verb::set || verb == Verb::remove || verb == Verb::touch ||
         verb == Verb::meta_get || verb == Verb::meta_debug || verb == Verb::meta_noop ||
         verb == Verb::version;
}

std::string_view name_of(Verb verb) noexcept { return kNames[static_cast<std::size_t>(verb)]; }

Scanned scan_command(std::string_view octets, std::uint32_t largest_value, std::size_t& scanned,
                     Command& command, Refusal& refusal) {
  refusal = {};
  if (octets.front() == kBinaryProtocol) return Scanned::hopeless;
  const std::size_t end = octets.find('\n', scanned);
  const std::size_t size = std::min(end, octets.size());
  if (size >= kMaxLine && size >= longest_line(octets)) {
    refusal.answer = kLongLine;
    return Scanned::hopeless;
  }
  if (end == std::string_view::npos) {
    scanned = size;
    return Scanned::more;
  }
  scanned = 0;
  command = {};
  command.line_size = static_cast<std::uint32_t>(end + 1);
  std::string_view line = octets.substr(0, end);
  if (line.size() > 1 && line.back() == '\r') line.remove_suffix(1);
  // To a server a line is a string of C.
  line = line.substr(0, line.find('\0'));
  refusal.answer = read_line(line, command, refusal, largest_value);
  if (refusal.answer.empty()) {
    refusal.skip = 0;
    return Scanned::command;
  }
  refusal.silent = command.noreply;
  return Scanned::refused;
}

std::string_view next_word(std::string_view& words) noexcept {
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  const std::string_view word = words.substr(0, words.find(' '));
  words.remove_prefix(word.size());
  return word;
}

std::string_view ring_key(const Command& command, std::string& scratch) {
  if (!command.base64_key) return command.key;
  scratch.resize(command.key.size());
  scratch.resize(decode_base64(command.key, scratch.data()));
  return scratch;
}

bool append_delete(std::string_view key, std::string& out) {
  const bool plain = is_key(key);
  if (plain) {
    out.append("delete ").append(key);
  } else {
    append_base64(key, out.append("md "));
    out.append(" b");
  }
  out.append("\r\n");
  return !plain;
}

void append_line(const Command& command, std::string& out) {
  const Verb verb = command.verb;
  out += name_of(verb);
  append_word(command.key, out);
  if (verb == Verb::meta_set) append_number(command.length, out);
  if (is_storage(verb) && verb != Verb::meta_set) {
    append_number(command.flags, out);
    append_number(command.exptime, out);
    append_number(command.length, out);
  }
  if (verb == Verb::touch || (verb == Verb::flush_all && command.exptime != 0)) {
    append_number(command.exptime, out);
  }
  if (verb == Verb::cas || verb == Verb::incr || verb == Verb::decr) {
    append_number(command.number, out);
  }
  append_rest(command, out);
  out += "\r\n";
}

}  // namespace clockwise::memcached
