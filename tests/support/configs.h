// Configurations in memory for tests: no file, no environment of the machine.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

#include "config/load.h"

namespace clockwise::config::test {

using Files = std::map<std::string, std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

inline constexpr const char* kMain = "main.yaml";

// The least that is a configuration.
inline constexpr const char* kSmall =
    "listeners:\n"
    "  - {name: web, address: 0.0.0.0:8080, pool: pages}\n"
    "pools:\n"
    "  pages:\n"
    "    servers:\n"
    "      - {name: cache-1, address: 10.0.0.11:8080}\n";

inline FileReader reader(Files files) {
  return [files = std::move(files)](const std::string& path) {
    using Contents = std::variant<std::string, std::string>;
    const auto found = files.find(path);
    if (found == files.end()) return Contents(std::in_place_index<1>, "no such file or directory");
    return Contents(std::in_place_index<0>, found->second);
  };
}

inline Environment environment(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

inline LoadResult load_from(Files files, const std::string& path = kMain,
                            Variables variables = {}) {
  return load(path, reader(std::move(files)), environment(std::move(variables)));
}

inline LoadResult load_text(const std::string& text, Variables variables = {}) {
  return load_from({{kMain, text}}, kMain, std::move(variables));
}

// The loaded configuration; a test failure with the problems when there is none.
inline Loaded expect_loaded(LoadResult result) {
  if (const auto* failure = std::get_if<Failure>(&result)) {
    for (const Problem& problem : failure->problems) ADD_FAILURE() << problem.text();
    throw std::runtime_error("not a valid configuration");
  }
  return std::get<Loaded>(std::move(result));
}

inline Loaded loaded(const std::string& text, Variables variables = {}) {
  return expect_loaded(load_text(text, std::move(variables)));
}

inline Loaded loaded(Files files, const std::string& path) {
  return expect_loaded(load_from(std::move(files), path));
}

// The problems of a file that must be refused, one headline each, without the file's name.
inline std::vector<std::string> problems(LoadResult result) {
  std::vector<std::string> lines;
  const auto* failure = std::get_if<Failure>(&result);
  if (failure == nullptr) return lines;
  for (const Problem& problem : failure->problems) {
    const std::string prefix = std::string(kMain) + ":";
    const std::string line = problem.headline();
    lines.push_back(line.starts_with(prefix) ? line.substr(prefix.size()) : line);
  }
  return lines;
}

inline std::vector<std::string> problems_of(const std::string& text, Variables variables = {}) {
  return problems(load_text(text, std::move(variables)));
}

}  // namespace clockwise::config::test
