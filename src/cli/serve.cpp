#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "cli/cli.h"
#include "config/load.h"
#include "runtime/log.h"
#include "runtime/supervisor.h"

namespace clockwise::cli {
namespace {

constexpr std::string_view kCommandLine = "command-line";  // stands for the file in messages

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char octet : text) {
    const auto c = static_cast<unsigned char>(octet);
    if (c == '"' || c == '\\') out += '\\';
    if (c < 0x20)
      out += fmt::format("\\x{:02x}", c);
    else
      out += octet;
  }
  return out + '"';
}

// An address makes a good name, as long as it may be one.
std::string server_name(const std::string& address, std::size_t number) {
  const bool fits =
      !address.empty() && address.size() <= 64 && std::ranges::all_of(address, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_' || c == ':' || c == '-';
      });
  return fits ? address : fmt::format("server-{}", number);
}

std::string yaml_of(const ServeOptions& options) {
  std::string text = fmt::format(
      "listeners:\n"
      "  - name: web\n"
      "    address: {}\n"
      "    pool: pages\n"
      "pools:\n"
      "  pages:\n"
      "    servers:\n",
      quoted(options.listen));
  for (std::size_t i = 0; i < options.to.size(); ++i)
    text += fmt::format("      - {{name: {}, address: {}}}\n",
                        quoted(server_name(options.to[i], i + 1)), quoted(options.to[i]));
  return text;
}

int print_config(const std::string& text, const config::FileReader& read) {
  const auto loaded = config::load(std::string(kCommandLine), read, config::real_environment());
  if (const auto* failure = std::get_if<config::Failure>(&loaded)) {
    for (const config::Problem& problem : failure->problems)
      fmt::print(stderr, "{}\n", problem.text());
    return kError;
  }
  fmt::print("{}", text);
  return kOk;
}

}  // namespace

int serve(const ServeOptions& options) {
  if (const auto level = runtime::log::level_of(options.log_level)) runtime::log::set_level(*level);
  runtime::ServeSettings settings{.config_file = options.config, .workers = options.workers};
  if (options.config.empty()) {
    const std::string text = yaml_of(options);
    settings.config_file = kCommandLine;
    settings.read = [text](const std::string&) {
      return std::variant<std::string, std::string>(std::in_place_index<0>, text);
    };
    if (options.print_config) return print_config(text, settings.read);
  }
  return runtime::serve(settings);
}

}  // namespace clockwise::cli
