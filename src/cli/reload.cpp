// clockwise reload: asks the running proxy to load its configuration again, prints what it did.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>
#include <cstdlib>

#include "cli/admin_client.h"
#include "cli/cli.h"
#include "cli/json_at.h"

namespace clockwise::cli {

namespace {

namespace json = boost::json;

double percent(double ratio) { return ratio * 100; }

void print_servers(const json::object& report) {
  for (const json::object* server : objects_at(report, "servers")) {
    std::string what;
    for (const json::value& change : array_at(*server, "changes"))
      if (change.is_string()) what += (what.empty() ? "" : ", ") + std::string(change.get_string());
    if (!what.empty()) fmt::print("  {}: {}\n", text_at(*server, "name"), what);
  }
}

// `what`: "moved", or "would move" where nothing was applied.
void print_report(const json::object& report, std::string_view what) {
  fmt::print(
      "pool {}: {:.1f} % of the keys {}, minimum {:.1f} %, {:.1f} % between servers that did "
      "not change\n",
      text_at(report, "pool"), percent(number_at(report, "moved_ratio")), what,
      percent(number_at(report, "minimum_ratio")), percent(number_at(report, "needless_ratio")));
  print_servers(report);
  for (const json::object* move : objects_at(report, "moves"))
    fmt::print("  {:>6.2f} %  {} -> {}\n", percent(number_at(*move, "ratio")),
               text_at(*move, "from"), text_at(*move, "to"));
}

void print_reload(const json::object& answer) {
  fmt::print("{} in {:.0f} ms, configuration {}\n", text_at(answer, "result"),
             number_at(answer, "duration_seconds") * 1000, text_at(answer, "config_digest"));
  for (const json::object* report : objects_at(answer, "pools")) print_report(*report, "moved");
  for (const json::object* one : objects_at(answer, "not_applied"))
    fmt::print("not applied: {}: {}\n", text_at(*one, "path"), text_at(*one, "reason"));
}

// FILE:LINE:COLUMN: message, as `check` prints it.
void print_problem(const json::object& problem) {
  const json::value* position = problem.if_contains("position");
  if (position && position->is_object()) {
    const json::object& at = position->get_object();
    fmt::print(stderr, "{}:{:.0f}:{:.0f}: ", text_at(at, "file"), number_at(at, "line"),
               number_at(at, "column"));
  }
  fmt::print(stderr, "{}\n", text_at(problem, "message"));
}

void print_refusal(const json::object& answer) {
  const auto errors = objects_at(answer, "errors");
  for (const json::object* problem : errors) print_problem(*problem);
  if (errors.empty()) print_problem(object_at(answer, "error"));
  for (const json::object* report : objects_at(answer, "pools"))
    print_report(*report, "would move");
}

int exit_code(unsigned status, const json::object& answer) {
  if (status == 200) return kOk;
  const std::string code = text_at(object_at(answer, "error"), "code");
  return code == "max_remap" || code == "max_shrink" ? kRefused : kError;
}

std::string token_of(const ReloadOptions& options) {
  if (!options.token.empty()) return options.token;
  const char* const from_environment = std::getenv("CLOCKWISE_ADMIN_TOKEN");
  return from_environment ? from_environment : "";
}

}  // namespace

int reload(const ReloadOptions& options) {
  AdminCall call;
  call.method = "POST";
  call.target = options.force ? "/api/v1/reload?force=1" : "/api/v1/reload";
  call.token = token_of(options);
  const auto answer = call_admin(options.admin, call);
  if (!answer) {
    fmt::print(stderr, "clockwise: {}\n", answer.error().message);
    return kError;
  }

  const auto document = object_of(options.admin, *answer);
  if (!document) {
    fmt::print(stderr, "clockwise: {}\n", document.error().message);
    return kError;
  }
  const json::object& body = *document;
  if (options.json)
    fmt::print("{}", answer->body);
  else if (answer->status == 200)
    print_reload(body);
  else
    print_refusal(body);
  return exit_code(answer->status, body);
}

}  // namespace clockwise::cli
