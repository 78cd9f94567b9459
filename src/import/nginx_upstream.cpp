// `upstream NAME { … }` of nginx.conf.
#include <fmt/format.h>

#include <algorithm>

#include "config/field.h"
#include "config/values.h"
#include "import/model.h"
#include "import/nginx_parts.h"
#include "import/spans.h"
#include "import/weights.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using config::quoted;

// nginx asks port 80 where none is written, and reads 080 as 80; the ring goes on hashing the text
// as it stands.
std::string address_of(std::string_view text) {
  if (text.starts_with("unix:")) return std::string(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return fmt::format("{}:80", text);
  const std::size_t port = text.find_first_not_of('0', colon + 1);
  return fmt::format("{}:{}", text.substr(0, colon),
                     port == std::string_view::npos ? "0" : text.substr(port));
}

class Upstream {
 public:
  Upstream(const Reading& reading, const Directive& upstream, const Variables& variables)
      : reading_(reading), upstream_(upstream), variables_(variables) {}

  Pool read(Names& names) {
    if (upstream_.words.size() > 2) problem(upstream_, 2, "an upstream has one name");
    pool_.source_name = fmt::format("upstream {}", upstream_.parameter(1));
    pool_.name = names.take(name_from(upstream_.parameter(1), "pool"));
    for (const Directive& directive : upstream_.children) take(directive);
    if (pool_.servers.empty()) problem(upstream_, 0, "has no server");
    choose_scheme();
    return std::move(pool_);
  }

 private:
  void problem(const Directive& at, std::size_t word, std::string_view message) const {
    reading_.problems.push_back(at.source->problem(
        at.words[word].place, fmt::format("{}: {}", pool_.source_name, message)));
  }
  void tell(const Directive& at, std::string_view message) const {
    note(reading_, at, fmt::format("{}: {}", pool_.source_name, message));
  }

  void take(const Directive& directive) {
    const std::string& name = directive.name();
    if (name == "server")
      add_server(directive);
    else if (name == "hash" || name == "ip_hash" || name == "least_conn" || name == "random" ||
             name == "least_time")
      method_ = &directive;  // the last one counts
    else if (name.starts_with("balancer_by_lua"))
      lua_ = &directive;
    else if (name == "keepalive_timeout")
      read_idle(directive);
    else
      note_advice(reading_, directive);
  }

  void read_idle(const Directive& directive) {
    pool_.idle = parse_span(directive.parameter(1), 1s);
    if (!pool_.idle || *pool_.idle == 0ms) {
      pool_.idle.reset();
      tell(directive, "keepalive_timeout is not carried over: timeouts.idle wants 1ms to a year");
    }
  }

  void add_server(const Directive& directive) {
    const std::string_view text = directive.parameter(1);
    if (text.empty()) return problem(directive, 0, "server has no address");
    std::string address = address_of(text);
    const auto parsed = config::parse_address(address, config::PortRule::connecting);
    if (!parsed)
      return problem(directive, 1, fmt::format("{} {}", quoted(text), parsed.error().message));
    Server server{.name = names_.take(name_from(text, "server")),
                  .address = std::move(address),
                  .label = std::string(text),
                  .zone = {}};
    bool keep = true;
    for (std::size_t i = 2; i < directive.words.size(); ++i)
      keep = parameter(directive, i, server) && keep;
    if (keep) pool_.servers.push_back(std::move(server));
  }

  // False for a server that is left out.
  bool parameter(const Directive& directive, std::size_t index, Server& server) {
    const std::string_view word = directive.words[index].text;
    const std::string_view text = directive.parameter(1);
    const std::string_view name = word.substr(0, word.find('='));
    if (name == "weight") {
      read_weight(directive, index, server);
    } else if (word == "down") {
      server.down = true;
    } else if (word == "backup") {
      tell(directive, fmt::format("the backup server {} is left out: put it into a pool of its own "
                                  "and name that as fallback",
                                  quoted(text)));
      return false;
    } else if (name == "max_fails" || name == "fail_timeout") {
      tell(directive, fmt::format("{} is outlier here: consecutive_failures and eject", name));
    } else if (name == "max_conns") {
      tell(directive, "max_conns is connections.max here, one number for all servers of a pool");
    } else if (word == "resolve" || name == "service") {
      tell(directive,
           fmt::format("{} is not carried over: names are resolved at start and reload", name));
    } else if (name == "slow_start") {
      tell(directive, "slow_start is handoff here: a server takes over its keys by and by");
    } else {
      tell(directive, fmt::format("{} is not carried over", quoted(word)));
    }
    return true;
  }

  void read_weight(const Directive& directive, std::size_t index, Server& server) {
    const std::string_view word = directive.words[index].text;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return problem(directive, index, "weight takes its number right behind a =: weight=2");
    const std::string_view text = word.substr(equals + 1);
    const auto weight = config::parse_integer(text, 1, 1'000'000'000);
    if (!weight)
      return problem(
          directive, index,
          fmt::format("the weight {} is not a whole number of at least 1", quoted(text)));
    server.weight = static_cast<double>(std::min(*weight, kMaxWeight));
    if (*weight <= kMaxWeight) return;
    pool_.moves = fmt::format("the weight {} is above {}", *weight, kMaxWeight);
    tell(directive, "keys will move: " + pool_.moves);
  }

  void choose_scheme() {
    if (lua_ != nullptr) return by_lua();
    if (method_ == nullptr || method_->name() != "hash") return without_hash();
    if (method_->words.size() < 2) return problem(*method_, 0, "hash wants a key");
    const bool consistent = method_->parameter(2) == "consistent";
    if (method_->words.size() > (consistent ? 3 : 2))
      return problem(*method_, consistent ? 3 : 2, "hash takes a key, and consistent behind it");
    pool_.scheme.placement = consistent ? ring::Placement::nginx : ring::Placement::nginx_hash;
    pool_.model = [servers = pool_.servers, consistent] {
      return consistent ? nginx_model(servers) : nginx_hash_model(servers);
    };
    const auto key = nginx_key(method_->parameter(1), variables_);
    if (key) {
      pool_.key = *key;
      return;
    }
    pool_.moves = fmt::format("its key {} cannot be written here, since {}",
                              quoted(method_->parameter(1)), key.error().message);
    tell(*method_, fmt::format("keys will move: {}; ring.key is \"{{uri}}\" now, choose it anew",
                               pool_.moves));
  }

  void by_lua() {
    pool_.placed = false;
    pool_.moves = fmt::format("{} chooses the server, by Lua, which is not read", lua_->name());
    tell(*lua_, "keys will move: " + pool_.moves);
    for (Server& server : pool_.servers) server.label.clear();
  }

  void without_hash() {
    const std::string method = method_ != nullptr ? method_->name() : "round robin";
    pool_.placed = false;
    tell(method_ != nullptr ? *method_ : upstream_,
         fmt::format("{} looks at no key, so there is no placement to keep: the pool gets the "
                     "scheme clockwise and the key {{uri}}",
                     method));
    for (Server& server : pool_.servers) server.label.clear();
  }

  const Reading& reading_;
  const Directive& upstream_;
  const Variables& variables_;
  Pool pool_;
  Names names_;
  const Directive* method_ = nullptr;
  const Directive* lua_ = nullptr;
};

}  // namespace

void read_upstream(const Reading& reading, const Directive& upstream, const Variables& variables,
                   Names& names) {
  reading.out.pools.push_back(Upstream(reading, upstream, variables).read(names));
}

}  // namespace clockwise::importer
