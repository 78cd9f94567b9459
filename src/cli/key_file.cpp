#include "cli/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "cli/key_log.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "memcached/key.h"
#include "upstream/key_count.h"
#include "upstream/pool_key.h"

namespace clockwise::cli {
namespace {

using http::KeyParts;

// The placeholders of a template, without their braces.
std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t open; (open = text.find('{')) != std::string_view::npos;) {
    const std::size_t close = std::min(text.find('}', open), text.size());
    found.emplace_back(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close);
  }
  return found;
}

// Does the log tell this of the request? Paths and queries are in every target.
bool has(const KeyParts& parts, std::string_view placeholder) {
  if (placeholder == "host") return !parts.host.empty();
  if (placeholder == "scheme") return !parts.scheme.empty();
  if (placeholder == "method") return !parts.method.empty();
  if (placeholder == "client_ip") return !parts.client_ip.empty();
  return !placeholder.starts_with("header:") && !placeholder.starts_with("cookie:");
}

// The keys of one side of a change.
class KeyMaker {
 public:
  explicit KeyMaker(const config::Pool& pool)
      : template_(upstream::key_template(pool.ring)),
        placeholders_(placeholders(pool.ring.key)),
        of_items_(pool.protocol == config::Protocol::memcached) {}

  std::string_view key(const KeyParts& parts) {
    if (template_.is_uri() && !of_items_) return parts.uri;
    for (const std::string& placeholder : placeholders_) {
      if (has(parts, placeholder)) continue;
      ++without_;
      lacking_ = placeholder;
      break;
    }
    const std::string_view text = template_.render(parts, scratch_);
    return of_items_ ? item_key(text) : text;
  }

  std::uint64_t without() const { return without_; }
  const std::string& lacking() const { return lacking_; }

 private:
  // As memcached servers are asked for it.
  std::string_view item_key(std::string_view text) {
    item_.clear();
    memcached::append_escaped(text, item_);
    memcached::digest_if_long(item_);
    return item_;
  }

  http::KeyTemplate template_;
  std::vector<std::string> placeholders_;
  bool of_items_;  // the servers are memcached
  std::string scratch_, item_;
  std::uint64_t without_ = 0;  // keys that a part was missing for
  std::string lacking_;        // the last such part
};

// Counts for one change.
class Count {
 public:
  explicit Count(CountedChange& change) : change_(change), counter_(change.before, change.after) {
    const config::Pool* const before = change.before.pool;
    const config::Pool* const after = change.after.pool;
    maker_.emplace(after != nullptr ? *after : *before);
    if (before != nullptr && after != nullptr &&
        (before->ring.key != after->ring.key || before->ring.key_ignore != after->ring.key_ignore ||
         before->protocol != after->protocol))
      maker_before_.emplace(*before);
  }

  void add(std::string_view key) { counter_.add(key); }
  void add(const KeyParts& request) {
    const std::string_view key = maker_->key(request);
    if (maker_before_)
      counter_.add(maker_before_->key(request), key);
    else
      counter_.add(key);
  }

  void finish() {
    change_.keys = counter_.result();
    for (const auto* maker : {&maker_, &maker_before_})
      if (*maker && (*maker)->without() > 0)
        fmt::print(stderr,
                   "note: pool {}: {} of {} keys are counted without {{{}}}, which the log does "
                   "not have\n",
                   (change_.after.pool ? change_.after : change_.before).pool->name,
                   (*maker)->without(), change_.keys.total, (*maker)->lacking());
  }

 private:
  CountedChange& change_;
  upstream::KeyCounter counter_;
  std::optional<KeyMaker> maker_, maker_before_;
};

// All lines of one file.
class Reading {
 public:
  Reading(const std::string& file, std::span<CountedChange> changes)
      : name_(file == "-" ? "standard input" : file) {
    counts_.reserve(changes.size());
    for (CountedChange& change : changes) counts_.emplace_back(change);
  }

  void take(std::string_view line) {
    ++lines_;
    if (line.empty()) return;
    if (log_) return count_line(line, lines_);
    first_.emplace_back(line);
    first_numbers_.push_back(lines_);
    if (first_.size() == kLinesToDetect) detect();
  }

  void finish() {
    if (!log_) detect();
    if (bad_ > 0)
      fmt::print(stderr,
                 "note: {} is read as a {}: {} of {} lines have no request and are left out, "
                 "first line {}\n",
                 name_, to_string(format_), bad_, lines_, first_bad_);
    for (Count& count : counts_) count.finish();
  }

 private:
  void detect() {
    format_ = detect_key_format(first_);
    log_.emplace(format_);
    for (std::size_t i = 0; i < first_.size(); ++i) count_line(first_[i], first_numbers_[i]);
    first_.clear();
  }

  void count_line(std::string_view line, std::uint64_t number) {
    if (format_ == KeyFormat::plain) {
      for (Count& count : counts_) count.add(line);
      return;
    }
    const std::optional<KeyParts> request = log_->request(line);
    if (!request) {
      if (bad_++ == 0) first_bad_ = number;
      return;
    }
    for (Count& count : counts_) count.add(*request);
  }

  std::string name_;
  std::vector<Count> counts_;
  std::vector<std::string> first_;  // lines that wait for the format
  std::vector<std::uint64_t> first_numbers_;
  KeyFormat format_ = KeyFormat::plain;
  std::optional<LogReader> log_;  // once the format is known
  std::uint64_t lines_ = 0, bad_ = 0, first_bad_ = 0;
};

Result<void> count_keys_of(int descriptor, Reading& reading) {
  struct stat status{};
  const bool sized = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  Progress progress("counting keys", sized ? static_cast<std::uint64_t>(status.st_size) : 0);
  return read_lines(
      descriptor,
      [&](std::string_view line) -> Result<void> {
        reading.take(line);
        return {};
      },
      [&](std::uint64_t bytes) -> Result<void> {
        progress.update(bytes);
        return {};
      });
}

}  // namespace

Result<void> count_keys(const std::string& file, std::span<CountedChange> changes) {
  Reading reading(file, changes);
  const int descriptor = file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(std::strerror(errno));
  const Result<void> done = count_keys_of(descriptor, reading);
  if (descriptor != STDIN_FILENO) ::close(descriptor);
  if (done) reading.finish();
  return done;
}

}  // namespace clockwise::cli
