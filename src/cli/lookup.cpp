// `clockwise lookup`: who owns each key.
//
// One line a key: KEY<TAB>SERVER<TAB>ADDRESS, with --replicas N followed by <TAB>SERVER<TAB>ADDRESS
// for each further owner, in the order in which they would be asked.
#include "upstream/lookup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/streams.h"
#include "upstream/json.h"
#include "upstream/plan.h"

namespace clockwise::cli {
namespace {

constexpr std::string_view kCommand = "lookup";

Result<ring::Position> parse_position(std::string_view text, const ring::Ring& ring) {
  const auto last = static_cast<ring::Position>(ring.layout().positions - 1);
  ring::Position position = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
  if (error != std::errc() || end != text.data() + text.size() || position > last)
    return fail(fmt::format("\"{}\" is not a position of this ring, 0 to {}", text, last));
  return position;
}

class Answers {
 public:
  Answers(const LookupOptions& options, const config::Pool& pool, const ring::Ring& ring)
      : options_(options), pool_(pool), ring_(ring) {}

  Result<void> add(std::string_view key) {
    const Result<ring::Position> position =
        options_.hashes ? parse_position(key, ring_) : ring_.hash(key);
    if (!position) return position.error();
    // A line has the owner that is asked first; JSON tells all.
    const std::uint32_t owners = options_.json ? pool_.ring.replicas : 1;
    const upstream::KeyPlace place =
        upstream::locate(pool_, ring_, *position, std::max(options_.replicas, owners));
    if (options_.json)
      keys_.push_back(upstream::to_json(pool_, key, place));
    else
      append_line(key, place);
    return {};
  }

  // What is complete goes out, so that a program that asks key by key is answered at once.
  Result<void> flush() { return output_.flush(); }

  Result<void> finish() {
    if (options_.json) {
      const boost::json::object document{{"pool", pool_.name}, {"keys", std::move(keys_)}};
      output_.append(upstream::to_text(document));
      output_.append("\n");
    }
    return output_.flush();
  }

 private:
  void append_line(std::string_view key, const upstream::KeyPlace& place) {
    output_.append(key);
    for (const ring::ServerIndex owner : place.owners) {
      const config::Server& server = pool_.servers[owner];
      output_.append("\t");
      output_.append(server.name);
      output_.append("\t");
      output_.append(server.address.text);
    }
    output_.append("\n");
  }

  const LookupOptions& options_;
  const config::Pool& pool_;
  const ring::Ring& ring_;
  boost::json::array keys_;
  Output output_;
};

Result<void> answer(const LookupOptions& options, const config::Pool& pool) {
  const auto ring = upstream::build_ring(pool);
  if (!ring) return ring.error();
  if ((*ring)->empty())
    return fail(fmt::format("pool {} has no server on its ring, nobody owns a key", pool.name));
  Answers answers(options, pool, **ring);
  const auto add = [&](std::string_view key) { return answers.add(key); };
  for (const std::string& key : options.keys) {
    auto done = key == "-"
                    ? read_lines(STDIN_FILENO, add, [&](std::uint64_t) { return answers.flush(); })
                    : answers.add(key);
    if (!done) return done;
  }
  return answers.finish();
}

}  // namespace

int lookup(const LookupOptions& options) {
  const std::optional<config::Loaded> loaded = load_or_report(options.config);
  if (!loaded) return kError;
  const Result<const config::Pool*> pool = choose_pool(loaded->config, options.pool);
  if (!pool) return complain(kCommand, pool.error().message);
  const Result<void> done = answer(options, **pool);
  return done ? kOk : complain(kCommand, done.error().message);
}

}  // namespace clockwise::cli
