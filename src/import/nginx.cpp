// nginx.conf: upstreams become pools, servers become listeners.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "config/field.h"
#include "config/values.h"
#include "import/nginx_advice.h"
#include "import/nginx_parts.h"

namespace clockwise::importer {

namespace {

std::string advice_text(const Directive& directive) {
  return fmt::format("{} {}", directive.name(), nginx_advice(directive.name()));
}

}  // namespace

void note_advice(const Reading& reading, const Directive& directive) {
  note(reading, directive, advice_text(directive));
}

namespace {

constexpr std::size_t kMaxFiles = 300;
constexpr std::size_t kMaxIncludes = 16;  // inside each other

class NginxReader {
 public:
  explicit NginxReader(const Reading& reading) : reading_(reading) {}

  void read() {
    std::vector<Directive> top = parse(reading_.source);
    chain_.push_back(reading_.source.name());
    expand(top);
    if (!reading_.problems.empty()) return;
    for (const Directive& directive : top) collect(directive);
    for (const Directive& directive : top) read_top(directive);
    const Variables variables = [this](std::string_view name) { return variable(name); };
    Names names;
    for (const Directive* upstream : upstreams_)
      if (has_its_own_name(*upstream)) read_upstream(reading_, *upstream, variables, names);
    read_servers(reading_, https_, variables);
    for (const auto& [name, sets] : sets_)
      for (const Directive* set : sets)
        if (!used_.contains(name)) note_advice(reading_, *set);
  }

 private:
  std::vector<Directive> parse(const config::Source& source) {
    auto parsed = parse_nginx(source);
    if (auto* directives = std::get_if<std::vector<Directive>>(&parsed))
      return std::move(*directives);
    reading_.problems.push_back(std::get<config::Problem>(std::move(parsed)));
    return {};
  }

  void problem(const Directive& at, std::size_t word, std::string message) const {
    reading_.problems.push_back(at.source->problem(at.words[word].place, std::move(message)));
  }

  // nginx wants one, and no two that differ in nothing but the case of letters.
  bool has_its_own_name(const Directive& upstream) {
    const std::string_view name = upstream.parameter(1);
    if (name.empty()) {
      problem(upstream, 0, "upstream wants a name");
      return false;
    }
    if (names_.insert(lower_case(std::string(name))).second) return true;
    problem(upstream, 1, fmt::format("a second upstream {}", config::quoted(name)));
    return false;
  }

  // Puts what a file includes in the place of the directive, as nginx does.
  void expand(std::vector<Directive>& directives) {
    std::vector<Directive> out;
    for (Directive& directive : directives) {
      if (directive.block) expand(directive.children);
      const bool follow = directive.name() == "include" && directive.words.size() == 2;
      if (!follow) {
        out.push_back(std::move(directive));
        continue;
      }
      for (const std::string& path : paths_of(directive)) {
        std::vector<Directive> included = include(directive, path);
        chain_.push_back(path);
        expand(included);
        chain_.pop_back();
        std::move(included.begin(), included.end(), std::back_inserter(out));
      }
    }
    directives = std::move(out);
  }

  // The files that an include names, by a pattern in the order of their names.
  std::vector<std::string> paths_of(const Directive& directive) {
    const std::string path = resolved(directive.parameter(1));
    if (path.find_first_of("*?[") == std::string::npos) return {path};
    std::vector<std::string> paths = reading_.files.match(path);
    if (paths.empty())
      note(reading_, directive,
           fmt::format("include {} names no file", config::quoted(directive.parameter(1))));
    return paths;
  }

  std::vector<Directive> include(const Directive& directive, const std::string& path) {
    const std::string_view name = directive.parameter(1);
    const auto skip = [&](std::string_view why) {
      note(reading_, directive,
           fmt::format("include {} is not followed: {}", config::quoted(name), why));
      return std::vector<Directive>();
    };
    if (std::find(chain_.begin(), chain_.end(), path) != chain_.end())
      return skip(fmt::format("{} includes itself", path));
    if (chain_.size() > kMaxIncludes || files_.size() >= kMaxFiles)
      return skip(
          fmt::format("more than {} files, or {} inside each other", kMaxFiles, kMaxIncludes));
    auto text = reading_.files.read(path);
    if (const auto* reason = std::get_if<1>(&text))
      return skip(fmt::format("{} cannot be read ({})", path, *reason));
    auto source = config::Source::decode(path, std::get<0>(std::move(text)));
    if (auto* problem = std::get_if<config::Problem>(&source)) {
      reading_.problems.push_back(std::move(*problem));
      return {};
    }
    return parse(files_.emplace_back(std::get<config::Source>(std::move(source))));
  }

  // Relative names start at the folder of the main file.
  [[nodiscard]] std::string resolved(std::string_view name) const {
    const std::string& main = reading_.source.name();
    const std::size_t slash = main.rfind('/');
    if (name.starts_with('/') || slash == std::string::npos) return std::string(name);
    return fmt::format("{}/{}", std::string_view(main).substr(0, slash), name);
  }

  // Upstreams, the blocks they stand in, and what sets variables, at any depth.
  void collect(const Directive& directive) {
    if (directive.name() == "http") https_.push_back(&directive);
    if (directive.name() == "stream" || directive.name() == "mail") return;
    if (directive.name() == "upstream" && directive.block) upstreams_.push_back(&directive);
    if (directive.name() == "set" && directive.words.size() == 3)
      if (directive.parameter(1).starts_with('$'))
        sets_[std::string(directive.parameter(1).substr(1))].push_back(&directive);
    for (const Directive& child : directive.children) collect(child);
  }

  void read_top(const Directive& directive) {
    const std::string& name = directive.name();
    if (name == "http" || name == "upstream") return;
    if (name == "server") return https_.push_back(&directive);
    if (name == "worker_processes") return read_workers(directive);
    if (name == "stream")
      return reading_.leave_out(*directive.source, directive.place(), advice_text(directive));
    if (name != "events") return note_advice(reading_, directive);
    for (const Directive& child : directive.children) note_advice(reading_, child);
  }

  void read_workers(const Directive& directive) {
    const auto workers = config::parse_integer(directive.parameter(1), 1, 1024);
    if (workers) reading_.out.workers = static_cast<std::uint32_t>(*workers);
  }

  // Set twice to different texts, a variable is no single thing that a key could use.
  std::optional<std::string> variable(std::string_view name) {
    const auto found = sets_.find(std::string(name));
    if (found == sets_.end()) return std::nullopt;
    const std::string_view text = found->second.front()->parameter(2);
    for (const Directive* set : found->second)
      if (set->parameter(2) != text) return std::nullopt;
    used_.insert(found->first);
    return std::string(text);
  }

  const Reading& reading_;
  std::deque<config::Source> files_;
  std::vector<std::string> chain_;  // the files around the directive at hand, the main file first
  std::vector<const Directive*> https_;
  std::vector<const Directive*> upstreams_;
  std::map<std::string, std::vector<const Directive*>> sets_;
  std::set<std::string> used_;
  std::set<std::string> names_;  // of upstreams, in lower case
};

}  // namespace

void read_nginx(const Reading& reading) { NginxReader(reading).read(); }

}  // namespace clockwise::importer
