#include "cli/demo_files.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <regex>
#include <span>

namespace clockwise::cli {
namespace {

// "  - {name: cache-1, address: 10.0.0.11:8080, weight: 2}", perhaps in a comment.
const std::regex kServerLine(R"(^(\s*)(#?)\s*- *\{ *name: *([A-Za-z0-9._:-]+) *,(.*)$)");
const std::regex kAddress(R"(address: *[^,} ]+)");
const std::regex kWeight(R"(, *weight: *[0-9.]+)");
const std::regex kAccessLog(R"((^|\n)access_log:[^\n]*)");

constexpr std::string_view kListener = "127.0.0.1:8080";
constexpr std::string_view kAdmin = "127.0.0.1:9901";

struct ServerLine {
  std::string text, indent, name;
  bool commented = false;
};

std::optional<ServerLine> server_line(const std::string& line) {
  std::smatch match;
  if (!std::regex_match(line, match, kServerLine)) return std::nullopt;
  return ServerLine{line, match[1], match[3], match[2].length() > 0};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Every line through `edit`, which answers with the line to put there, or nothing to drop it.
using Edit = std::function<std::optional<std::string>(const std::string&)>;

std::string edited(std::string_view text, const Edit& edit) {
  std::string result;
  for (const std::string& line : lines_of(text))
    if (const auto kept = edit(line)) result += *kept + '\n';
  return result;
}

Edit on_server(std::string_view name,
               std::function<std::optional<std::string>(const ServerLine&)> edit) {
  return [name, edit = std::move(edit)](const std::string& line) -> std::optional<std::string> {
    const auto server = server_line(line);
    return server && server->name == name ? edit(*server) : line;
  };
}

std::string loopback(std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }

// The schema stays beside the example; its copy must not name a file that is not there.
std::string without_schema(std::string_view text) {
  constexpr std::string_view kSchema = "# yaml-language-server:";
  if (text.starts_with(kSchema)) text.remove_prefix(text.find('\n') + 1);
  if (text.starts_with("#\n")) text.remove_prefix(2);
  return std::string(text);
}

bool replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return false;
  text.replace(at, what.size(), by);
  return true;
}

std::string spare_lines(std::vector<std::string> names, const std::string& indent,
                        std::span<const std::uint16_t> ports) {
  std::string text = fmt::format(
      "\n{0}# More servers already listen: take the \"# \" away before one of them and save.\n",
      indent);
  for (const std::uint16_t port : ports) {
    names.push_back(next_name(names));
    text += fmt::format("{}# - {{name: {}, address: {}}}\n", indent, names.back(), loopback(port));
  }
  return text;
}

}  // namespace

std::vector<std::string> server_names(std::string_view upstreams) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(upstreams))
    if (const auto server = server_line(line); server && !server->commented)
      names.push_back(server->name);
  return names;
}

std::string next_name(const std::vector<std::string>& names) {
  if (names.empty()) return "cache-1";
  const std::string& last = names.back();
  const std::size_t digits = last.find_last_not_of("0123456789") + 1;
  if (digits == last.size()) return last + "-2";
  return last.substr(0, digits) + std::to_string(std::stoul(last.substr(digits)) + 1);
}

Result<DemoFiles> demo_files(std::string_view configuration, std::string_view upstreams,
                             const DemoPorts& ports) {
  DemoFiles files{without_schema(configuration), {}};
  if (!replace(files.configuration, kListener, loopback(ports.proxy)) ||
      !replace(files.configuration, kAdmin, loopback(ports.admin)))
    return fail(
        fmt::format("the example has no listener on {} or no admin on {}", kListener, kAdmin));
  // 400 requests a second would fill the disk of someone who lets the demo run over night.
  files.configuration = std::regex_replace(files.configuration, kAccessLog, "$1access_log: off");

  std::size_t next = 0;
  std::string indent;
  files.upstreams =
      edited(without_schema(upstreams), [&](const std::string& line) -> std::optional<std::string> {
        const auto server = server_line(line);
        if (!server) return line;
        if (server->commented) return std::nullopt;
        indent = server->indent;
        return std::regex_replace(line, kAddress, "address: " + loopback(ports.servers.at(next++)));
      });
  if (next == 0) return fail("the example's list has no line of the form - {name: …, address: …}");
  files.upstreams +=
      spare_lines(server_names(upstreams), indent, std::span(ports.servers).subspan(next));
  return files;
}

std::string with_comment_removed(std::string_view upstreams, std::string_view server) {
  return edited(upstreams, on_server(server, [](const ServerLine& line) {
                  return line.indent + line.text.substr(line.text.find('-'));
                }));
}

std::string without(std::string_view upstreams, std::string_view server) {
  return edited(upstreams, on_server(server, [](const ServerLine&) { return std::nullopt; }));
}

std::string with_weight(std::string_view upstreams, std::string_view server,
                        std::string_view weight) {
  return edited(upstreams, on_server(server, [weight](const ServerLine& line) {
                  std::string text = std::regex_replace(line.text, kWeight, "");
                  text.insert(text.rfind('}'), fmt::format(", weight: {}", weight));
                  return text;
                }));
}

}  // namespace clockwise::cli
