// `clockwise explain`: why a key is where it is, by a configuration or by a proxy that runs.
//
// Both sides answer with the same object (upstream/explain.h), so one text and one JSON serve them.
#include "upstream/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <optional>
#include <span>

#include "cli/admin_client.h"
#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/explain_text.h"
#include "cli/fleet_compare.h"
#include "cli/json_at.h"
#include "cli/streams.h"
#include "config/values.h"
#include "upstream/json.h"
#include "upstream/plan.h"

namespace clockwise::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kCommand = "explain";

using Keys = std::vector<std::string>;

struct Answer {
  std::string pool;
  json::array keys;
};

Result<Keys> keys_of(const ExplainOptions& options) {
  Keys keys;
  const auto add = [&](std::string_view key) {
    keys.emplace_back(key);
    return Result<void>();
  };
  for (const std::string& key : options.keys) {
    const auto done =
        key == "-" ? read_lines(STDIN_FILENO, add, [](std::uint64_t) { return Result<void>(); })
                   : add(key);
    if (!done) return done.error();
  }
  return keys;
}

Result<Answer> by_configuration(const config::Config& config, const std::string& name,
                                const Keys& keys) {
  const auto pool = choose_pool(config, name);
  if (!pool) return pool.error();
  const auto ring = upstream::build_ring(**pool);
  if (!ring) return ring.error();
  Answer answer{(*pool)->name, {}};
  for (const std::string& key : keys) {
    const upstream::Question question{key, (*ring)->hash(key), true};
    const auto explanation = upstream::explain(**pool, **ring, question, (*pool)->ring.replicas);
    answer.keys.push_back(upstream::to_json(**pool, question, explanation));
  }
  return answer;
}

Result<std::string> pool_of_proxy(const ExplainOptions& options) {
  if (!options.pool.empty()) return config::valid(options.pool);
  const auto answer = ask_admin(options.admin, {.target = "/api/v1/pools", .token = options.token});
  if (!answer) return answer.error();
  const auto pools = fleet_pools(*answer);
  if (!pools) return no_proxy(options.admin, pools.error().message);
  if (pools->empty()) return fail(fmt::format("the proxy at {} has no pools", options.admin));
  std::vector<std::string> names;
  for (const FleetPool& pool : *pools) names.push_back(pool.name);
  if (names.size() > 1)
    return fail(fmt::format("the proxy has several pools, choose one with --pool: {}",
                            fmt::join(names, ", ")));
  return config::valid(std::move(names.front()));
}

std::string escaped(std::string_view octets) {
  std::string text;
  for (const char c : octets) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || c == '-' || c == '_' || c == '.' || c == '~')
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

// As many keys as fit into one request head.
Result<void> ask_for_some(const ExplainOptions& options, std::span<const std::string>& keys,
                          Answer& answer) {
  constexpr std::size_t kEnough = 8000;
  std::string target = "/api/v1/pools/" + escaped(answer.pool) + "/lookup";
  char separator = '?';
  std::size_t asked = 0;
  while (!keys.empty()) {
    const std::string parameter = separator + ("key=" + escaped(keys.front()));
    if (separator == '&' && target.size() + parameter.size() > kEnough) break;
    target += parameter;
    separator = '&';
    keys = keys.subspan(1);
    ++asked;
  }
  const auto found = ask_admin(options.admin, {.target = target, .token = options.token});
  if (!found) return found.error();
  const json::array& explained = array_at(*found, "keys");
  if (explained.size() != asked)
    return no_proxy(options.admin,
                    fmt::format("asked for {} keys, it answers {}", asked, explained.size()));
  for (const json::value& key : explained) {
    if (!key.is_object() || !key.get_object().contains("walk"))
      return fail(fmt::format("the proxy at {} is too old to explain a key", options.admin));
    answer.keys.push_back(key);
  }
  return {};
}

Result<Answer> by_proxy(const ExplainOptions& options, const Keys& keys) {
  const auto pool = pool_of_proxy(options);
  if (!pool) return pool.error();
  Answer answer{*pool, {}};
  for (std::span<const std::string> left = keys; !left.empty();)
    if (const auto done = ask_for_some(options, left, answer); !done) return done.error();
  return answer;
}

// One key that was named stands alone: the object of the key itself.
std::string document(const ExplainOptions& options, Answer answer) {
  if (options.keys.size() != 1 || options.keys.front() == "-")
    return upstream::to_text(json::object{{"pool", answer.pool}, {"keys", std::move(answer.keys)}});
  json::object alone{{"pool", answer.pool}};
  for (auto& member : answer.keys.front().get_object())
    alone[member.key()] = std::move(member.value());
  return upstream::to_text(alone);
}

Result<void> print(const ExplainOptions& options, Answer answer) {
  Output output;
  if (options.json) {
    output.append(document(options, std::move(answer)) + "\n");
    return output.flush();
  }
  for (const json::value& key : answer.keys) {
    if (&key != answer.keys.begin()) output.append("\n\n");
    output.append(explain_text(key.get_object()));
  }
  return output.flush();
}

}  // namespace

int explain(const ExplainOptions& options) {
  const auto keys = keys_of(options);
  if (!keys) return complain(kCommand, keys.error().message);
  std::optional<Result<Answer>> answer;
  if (options.admin.empty()) {
    const auto loaded = load_or_report(options.config);
    if (!loaded) return kError;
    answer = by_configuration(loaded->config, options.pool, *keys);
  } else {
    answer = by_proxy(options, *keys);
  }
  if (!*answer) return complain(kCommand, answer->error().message);
  const auto done = print(options, std::move(**answer));
  return done ? kOk : complain(kCommand, done.error().message);
}

}  // namespace clockwise::cli
