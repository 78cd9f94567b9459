#include "memcached/replicas.h"

#include "memcached/base64.h"
#include "memcached/key.h"
#include "memcached/number.h"

namespace clockwise::memcached {
namespace {

// The flag of a meta command that begins so; empty: it has none. Of one that is there twice no
// server takes the command.
std::string_view flag_of(const Command& command, char flag) noexcept {
  if (!is_meta(command.verb)) return {};
  std::string_view words = command.rest;
  for (std::string_view word = next_word(words); !word.empty(); word = next_word(words))
    if (word.front() == flag) return word;
  return {};
}

char mode_of(const Command& command) noexcept {
  const std::string_view mode = flag_of(command, 'M');
  return mode.size() == 2 ? mode.back() : '\0';
}

bool appends(const Command& command) noexcept {
  const char mode = mode_of(command);
  return mode == 'A' || mode == 'P';
}

void append_flag(std::string_view flag, std::string& out) {
  if (!out.empty()) out += ' ';
  out += flag;
}

// With those of its flags that `keeps`.
template <class Keeps>
Command with_flags(Command command, std::string& scratch, Keeps keeps) {
  scratch.clear();
  std::string_view words = command.rest;
  for (std::string_view word = next_word(words); !word.empty(); word = next_word(words))
    if (keeps(word)) append_flag(word, scratch);
  command.rest = scratch;
  return command;
}

// What a meta command does and to whom, but not on what condition nor what is answered.
std::string_view lasting_flags(Verb verb) noexcept {
  switch (verb) {
    case Verb::meta_set:
      return "bFT";
    case Verb::meta_delete:
      return "bIT";
    case Verb::meta_arithmetic:
      return "bDJMNT";
    default:
      return {};
  }
}

}  // namespace

Reach reach_of(const Command& command) noexcept {
  switch (command.verb) {
    case Verb::get:
    case Verb::gets:
    case Verb::gat:
    case Verb::gats:
    case Verb::meta_debug:
      return Reach::search;
    case Verb::meta_get:
      return flag_of(command, 'N').empty() ? Reach::search : Reach::first;
    case Verb::add:
    case Verb::replace:
    case Verb::cas:
      return Reach::decided;
    case Verb::meta_set:
      if (const char mode = mode_of(command); mode == 'E' || mode == 'R') return Reach::decided;
      [[fallthrough]];
    case Verb::meta_delete:
    case Verb::meta_arithmetic:
      return flag_of(command, 'C').empty() ? Reach::all : Reach::decided;
    default:
      return Reach::all;
  }
}

std::optional<std::int64_t> touch_of(const Command& command) noexcept {
  if (command.verb == Verb::gat || command.verb == Verb::gats) return command.exptime;
  if (command.verb != Verb::meta_get) return std::nullopt;
  const std::string_view flag = flag_of(command, 'T');
  std::int32_t exptime = 0;
  if (flag.empty() || !read_number(flag.substr(1), exptime)) return std::nullopt;
  return exptime;
}

Command follower_of(const Command& command, std::string& scratch) {
  Command follower = command;
  follower.number = 0;
  if (!is_meta(command.verb)) {
    if (is_storage(command.verb)) follower.verb = Verb::set;
    return follower;
  }
  const bool as_it_is = command.verb == Verb::meta_set && appends(command);
  return with_flags(follower, scratch, [&](std::string_view flag) {
    if (as_it_is && (flag.front() == 'M' || flag.front() == 'N')) return true;
    return lasting_flags(command.verb).find(flag.front()) != std::string_view::npos;
  });
}

bool makes(const Command& command) noexcept {
  if (flag_of(command, 'N').empty()) return false;
  return command.verb == Verb::meta_arithmetic ||
         (command.verb == Verb::meta_set && appends(command));
}

Command without_making(const Command& command, std::string& scratch) {
  return with_flags(command, scratch, [](std::string_view flag) { return flag.front() != 'N'; });
}

Command command_at(const Command& command, std::uint32_t place, std::string& scratch) {
  Command at = command;
  at.number = command.verb == Verb::cas ? unique_at(command.number, place) : command.number;
  std::uint64_t unique = 0;
  const std::string_view condition = flag_of(command, 'C');
  if (place == 0 || condition.empty() || !read_number(condition.substr(1), unique)) return at;
  at = with_flags(at, scratch, [](std::string_view flag) { return flag.front() != 'C'; });
  append_flag("C" + std::to_string(unique_at(unique, place)), scratch);
  at.rest = scratch;
  return at;
}

Command deletion_of(std::string_view ring_key, std::string& key) {
  Command command;
  command.verb = Verb::remove;
  command.key = ring_key;
  if (is_key(ring_key)) return command;
  key.clear();
  append_base64(ring_key, key);
  command.verb = Verb::meta_delete;
  command.key = key;
  command.rest = "b";
  command.base64_key = true;
  return command;
}

Command touch_for(std::string_view ring_key, std::int64_t exptime, std::string& key,
                  std::string& scratch) {
  Command command;
  command.verb = Verb::touch;
  command.key = ring_key;
  command.exptime = exptime;
  if (is_key(ring_key)) return command;
  key.clear();
  append_base64(ring_key, key);
  scratch = "b T" + std::to_string(exptime);
  command.verb = Verb::meta_get;
  command.key = key;
  command.rest = scratch;
  command.base64_key = true;
  return command;
}

void append_answer(const Reply& reply, std::uint32_t place, std::string& out) {
  const std::size_t begin = out.size();
  out.append(reply.line);
  if (place > 0 && reply.has_unique) {
    out.resize(out.rfind(' ') + 1);
    out.append(std::to_string(unique_at(reply.number, place)));
  }
  bool found = false;
  std::uint64_t unique = 0;
  const bool meta = reply.kind == ReplyKind::meta_done || reply.kind == ReplyKind::value;
  const std::string_view flag =
      place > 0 && meta ? meta_flag(reply.rest, 'c', found) : std::string_view();
  if (found && read_number(flag, unique)) {
    const auto at = static_cast<std::size_t>(flag.data() - reply.line.data());
    out.replace(begin + at, flag.size(), std::to_string(unique_at(unique, place)));
  }
  out.append("\r\n");
}

Did did(Verb verb, ReplyKind kind) noexcept {
  const bool counts = verb == Verb::incr || verb == Verb::decr || verb == Verb::meta_arithmetic;
  switch (kind) {
    case ReplyKind::end:
    case ReplyKind::not_found:
    case ReplyKind::not_stored:
    case ReplyKind::meta_not_found:
    case ReplyKind::meta_not_stored:
      return Did::missed;
    case ReplyKind::exists:
    case ReplyKind::meta_exists:
      return Did::refused;
    case ReplyKind::client_error:
      // Of what is no number.
      return counts ? Did::refused : Did::failed;
    case ReplyKind::error:
    case ReplyKind::server_error:
      return Did::failed;
    default:
      return Did::done;
  }
}

}  // namespace clockwise::memcached
