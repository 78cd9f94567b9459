// The only file that knows the command line library.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/cli.h"
#include "config/values.h"

namespace clockwise::cli {
namespace {

// Values are written as in the configuration.
Result<config::milliseconds> parse_timeout(std::string_view text) {
  return config::parse_duration(text, config::milliseconds{1});
}

// Requests per second; above it somebody has mistyped.
Result<double> parse_rate(std::string_view text) {
  return config::parse_number(text, 0, 1'000'000'000);
}

// Says what is wrong with a value that `parse` does not take.
template <class Parse>
CLI::Validator valid_for(Parse parse, const char* what) {
  return CLI::Validator(
      [parse](const std::string& text) {
        const auto value = parse(text);
        return value ? std::string() : fmt::format("\"{}\" {}", text, value.error().message);
      },
      what);
}

// The library reads "[a,b]" as a list of two and "++" as the end of a command. A key may look like
// that, so it passes the library behind a mark.
constexpr char kMark = '\x01';

std::string marked(std::string text) {
  const bool list = text.starts_with('[') && text.ends_with(']');
  return list || text == "++" || text.starts_with(kMark) ? kMark + text : text;
}

void unmark(std::string& text) {
  if (text.starts_with(kMark)) text.erase(0, 1);
}

// The arguments as the library wants them: the last one first.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> all(argv + 1, argv + argc);
  if (!all.empty() && (all[0] == "lookup" || all[0] == "explain"))
    std::ranges::transform(all, all.begin(), marked);
  std::ranges::reverse(all);
  return all;
}

// Every command with its options. Lives as long as the parse, since the library writes into it.
class CommandLine {
 public:
  CommandLine() {
    app_.name("clockwise");
    app_.set_version_flag("--version", fmt::format("clockwise {} (revision {}, {})", version(),
                                                   revision(), compiler()));
    app_.require_subcommand(0, 1);
    app_.add_flag("-t", test_only_, "Check the configuration of -c and exit");
    app_.add_option("-c,--config", config_, "Configuration file; without a command: serve it");
    add_serve();
    add_check();
    add_init();
    add_lookup();
    add_explain();
    add_plan();
    add_simulate();
    add_reload();
    add_import();
    add_fleet();
    add_demo();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(arguments(argc, argv));
    } catch (const CLI::Success& asked) {  // --help, --version
      return app_.exit(asked);
    } catch (const CLI::ParseError& wrong) {
      return usage(wrong.what());
    }
    if (command_) return command_();
    if (config_.empty())
      return usage(test_only_ ? "-t needs -c FILE" : "a command is needed, such as serve -c FILE");
    if (test_only_) return check(config_);
    serve_.config = config_;
    return serve(serve_);
  }

 private:
  static int usage(std::string_view what) {
    const std::string_view line = what.substr(0, what.find('\n'));
    fmt::print(stderr, "clockwise: {} (clockwise --help shows what there is)\n", line);
    return kUsage;
  }

  CLI::App* add(const char* name, const char* description, std::function<int()> command) {
    CLI::App* sub = app_.add_subcommand(name, description);
    sub->callback([this, command = std::move(command)] {
      if (!config_.empty() || test_only_)
        throw CLI::ValidationError("-c and -t stand behind the command");
      command_ = command;
    });
    return sub;
  }

  void add_serve() {
    CLI::App* sub = add("serve", "Run the proxy in the foreground", [this] {
      const bool nothing = serve_.config.empty() && serve_.listen.empty();
      return nothing ? usage("serve needs -c FILE, or --listen and --to") : serve(serve_);
    });
    auto* config = sub->add_option("-c,--config", serve_.config, "Configuration file");
    auto* listen =
        sub->add_option("--listen", serve_.listen, "Address to listen on, without a file");
    auto* to = sub->add_option("--to", serve_.to, "Servers to spread requests over: ADDR[,ADDR...]")
                   ->delimiter(',');
    auto* print = sub->add_flag("--print-config", serve_.print_config,
                                "Print the YAML that --listen and --to stand for");
    listen->needs(to)->excludes(config);
    to->needs(listen)->excludes(config);
    print->needs(listen);
    sub->add_option("--workers", serve_.workers, "Event-loop threads, instead of the file's")
        ->check(CLI::Range(1U, 1024U));
    sub->add_option("--log-level", serve_.log_level, "error, warn, info or debug")
        ->check(CLI::IsMember({"error", "warn", "info", "debug"}));
  }

  void add_check() {
    CLI::App* sub = add("check", "Validate a configuration", [this] { return check(check_); });
    sub->add_option("-c,--config", check_, "Configuration file")->required();
  }

  void add_init() {
    CLI::App* sub =
        add("init", "Write a commented starter configuration", [this] { return init(init_); });
    sub->add_option("FILE", init_, "File to write; never overwritten")->capture_default_str();
  }

  void add_lookup() {
    CLI::App* sub = add("lookup", "Say which server owns each key", [this] {
      unmark(lookup_.config);
      unmark(lookup_.pool);
      std::ranges::for_each(lookup_.keys, unmark);
      return lookup(lookup_);
    });
    sub->add_option("-c,--config", lookup_.config, "Configuration file")->required();
    sub->add_option("--pool", lookup_.pool, "Pool; needed when there are several");
    sub->add_flag("--json", lookup_.json, "One JSON document");
    sub->add_flag("--hashes", lookup_.hashes, "Keys are ring positions in decimal");
    sub->add_option("--replicas", lookup_.replicas, "Distinct servers to name for each key")
        ->check(CLI::Range(1U, 1'000'000U));
    sub->add_option("KEY", lookup_.keys, "Keys byte for byte; -: from stdin, one a line")
        ->required();
  }

  void add_explain() {
    CLI::App* sub = add("explain", "Say why a key is where it is", [this] {
      for (std::string* text : {&explain_.config, &explain_.admin, &explain_.token, &explain_.pool})
        unmark(*text);
      std::ranges::for_each(explain_.keys, unmark);
      const bool nothing = explain_.config.empty() && explain_.admin.empty();
      return nothing ? usage("explain needs -c FILE or --admin URL") : explain(explain_);
    });
    sub->add_option("-c,--config", explain_.config, "Configuration file");
    sub->add_option("--admin", explain_.admin, "Ask this proxy, which knows health and load");
    sub->add_option("--token", explain_.token, "Admin token")->envname("CLOCKWISE_ADMIN_TOKEN");
    sub->add_option("--pool", explain_.pool, "Pool; needed when there are several");
    sub->add_flag("--json", explain_.json, "One JSON document");
    sub->add_option("KEY", explain_.keys, "Keys byte for byte; -: from stdin, one a line")
        ->required();
  }

  void add_plan() {
    CLI::App* sub = add("plan", "Say what a change of the server list would move", [this] {
      if (!max_remap_.empty()) plan_.max_remap = *config::parse_share(max_remap_);
      if (!hit_ratio_.empty()) plan_.hit_ratio = *config::parse_share(hit_ratio_);
      if (!rate_.empty()) plan_.rate = *parse_rate(rate_);
      return plan(plan_);
    });
    sub->add_option("OLD", plan_.before, "Configuration or upstream file before; -: from stdin")
        ->required();
    sub->add_option("NEW", plan_.after, "Configuration or upstream file after; -: from stdin")
        ->required();
    sub->add_option("-c,--config", plan_.config, "Where upstream files take their ring from");
    sub->add_option("--pool", plan_.pool, "Only this pool");
    sub->add_option("--keys", plan_.keys,
                    "Keys to count: one a line, or an access log; -: from stdin");
    sub->add_flag("--json", plan_.json, "One JSON document");
    sub->add_option("--max-remap", max_remap_, "Exit 3 when more moves: 20% or 0.2")
        ->check(valid_for(config::parse_share, "SHARE"));
    sub->add_option("--hit-ratio", hit_ratio_, "Of the caches behind: what the change costs, 90%")
        ->check(valid_for(config::parse_share, "SHARE"));
    sub->add_option("--rate", rate_, "Requests per second, for the same")
        ->check(valid_for(parse_rate, "NUMBER"));
  }

  void add_simulate() {
    CLI::App* sub = add("simulate", "Place keys on servers, change the list, count", [this] {
      if (simulate_.add.empty() && simulate_.remove.empty()) simulate_.add = "1";
      return simulate(simulate_);
    });
    auto* preset =
        sub->add_option("--preset", simulate_.preset, "A published run; list: name them");
    sub->add_flag("--json", simulate_.json, "One JSON document");
    sub->add_option("--svg", simulate_.svg, "Draw the result into this file");
    CLI::Option_group* free = sub->add_option_group("Experiment", "Instead of a preset");
    free->excludes(preset);
    add_experiment(*free);
    add_parameters(*free);
  }

  void add_experiment(CLI::App& group) {
    SimulateOptions& to = simulate_;
    group.add_option("--scheme", to.schemes, "Schemes to compare")
        ->delimiter(',')
        ->capture_default_str();
    group.add_option("--keys", to.keys, "How many keys")->capture_default_str();
    group.add_option("--key-format", to.key_format, "Text of a key; {}: its number")
        ->capture_default_str();
    group.add_option("--nodes", to.nodes, "Servers before: a number, or A,B=2,C with weights")
        ->capture_default_str();
    group.add_option("--add", to.add, "Servers that come: a number or names; by default 1");
    group.add_option("--remove", to.remove, "Servers that go: a number from the end, or names");
    group.add_option("--points", to.points, "Points of each server, one after the other")
        ->delimiter(',')
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
    group.add_option("--balance", to.balance, "bounded: most load of a server over its fair one")
        ->check(CLI::Range(1.0, 1000.0))
        ->capture_default_str();
  }

  // The parameters of the schemes, as under `ring` in the configuration.
  void add_parameters(CLI::App& group) {
    ring::Scheme& to = simulate_.scheme;
    const auto add = [&](const std::string& name, auto& value, const std::string& description) {
      std::string flag = "--" + name;
      std::ranges::replace(flag, '_', '-');
      return group.add_option(flag, value, description)->each([this, name](const std::string&) {
        simulate_.parameters.push_back(name);
      });
    };
    add("hash", to.hash, "Hash function of the schemes that have a choice");
    add("label", to.label, "custom: text of point {i} of server {name}");
    add("bits", to.bits, "custom, modulo: bits of the hash")
        ->check(CLI::IsMember({32U, 64U, 256U}));
    add("table", to.table, "maglev: slots, a prime");
    add("form", to.form, "spymemcached: form of the points")
        ->check(CLI::IsMember({"java", "libmemcached"}));
    add("distribution", to.distribution, "twemproxy: kind of ring")
        ->check(CLI::IsMember({"ketama", "modula"}));
    add("avalanche", to.avalanche, "haproxy: true or false");
    add("min_size", to.min_size, "envoy: least points of the ring");
    add("max_size", to.max_size, "envoy: most points of the ring");
  }

  void add_reload() {
    CLI::App* sub =
        add("reload", "Ask the running proxy to reload", [this] { return reload(reload_); });
    sub->add_option("--admin", reload_.admin, "Admin address of the proxy")->capture_default_str();
    sub->add_option("--token", reload_.token, "Admin token")->envname("CLOCKWISE_ADMIN_TOKEN");
    sub->add_flag("--force", reload_.force, "Apply what a guard refuses");
    sub->add_flag("--json", reload_.json, "One JSON document");
  }

  void add_import() {
    CLI::App* sub = add("import", "Take over the pools of another program, keys where they are",
                        [this] { return import_pools(import_); });
    sub->add_option("FILE", import_.file, "nginx.conf, nutcracker.yml, haproxy.cfg, …")->required();
    sub->add_option("--from", import_.from,
                    "nginx, nutcracker, haproxy, mcrouter or envoy; guessed without it")
        ->check(CLI::IsMember({"nginx", "nutcracker", "haproxy", "mcrouter", "envoy"}));
    sub->add_option("--prove", import_.prove, "Compare that many keys with a model of the source")
        ->check(CLI::Range(1U, 100'000'000U));
  }

  void add_fleet() {
    CLI::App* sub = add("fleet", "Compare the rings of many proxies", [this] {
      if (!timeout_.empty()) fleet_.timeout = *parse_timeout(timeout_);
      return fleet(fleet_);
    });
    sub->add_option("URL", fleet_.urls, "Admin addresses of the proxies")->required();
    sub->add_option("--token", fleet_.token, "Admin token")->envname("CLOCKWISE_ADMIN_TOKEN");
    sub->add_option("--timeout", timeout_, "For each proxy, such as 500ms; 5s unless given")
        ->check(valid_for(parse_timeout, "DURATION"));
    sub->add_flag("--json", fleet_.json, "One JSON document");
  }

  void add_demo() {
    CLI::App* sub = add("demo", "Four embedded servers, the proxy and a live view",
                        [this] { return demo(once_); });
    sub->add_flag("--once", once_, "Run a short fixed scenario and exit");
  }

  CLI::App app_{
      "Consistent-hashing reverse proxy: each key has a server, and a change of the list "
      "moves as few keys as possible."};
  std::function<int()> command_;
  bool test_only_ = false;
  std::string config_, check_, init_ = "clockwise.yaml", max_remap_, hit_ratio_, rate_, timeout_;
  ServeOptions serve_;
  LookupOptions lookup_;
  ExplainOptions explain_;
  PlanOptions plan_;
  SimulateOptions simulate_;
  ReloadOptions reload_;
  ImportOptions import_;
  FleetOptions fleet_;
  bool once_ = false;
};

// What was printed is out only now: a full disk shows no sooner, and is the failure of any command.
int flushed(int code) {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  fmt::print(stderr, "clockwise: cannot write to standard output{}{}\n", errno == 0 ? "" : ": ",
             errno == 0 ? "" : std::strerror(errno));
  return kError;
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return flushed(CommandLine().run(argc, argv));
  } catch (const std::exception& failure) {
    fmt::print(stderr, "clockwise: {}\n", failure.what());
    return kError;
  }
}

}  // namespace clockwise::cli
