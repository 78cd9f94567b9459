// The upstream files that a configuration names: found beside it, read once each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "config/parsed.h"
#include "config/servers.h"

namespace clockwise::config {

// Reads an upstream file, `servers:` and nothing else, and checks it for `ring`.
[[nodiscard]] std::vector<Server> read_upstream(const Field& root, const WrittenRing& ring);

// Keeps the files, so that fields may point into them as long as it lives.
class UpstreamFiles {
 public:
  struct File {
    std::string path;
    std::string text;
  };

  // `main_file`: its folder is where relative paths start.
  UpstreamFiles(std::string main_file, const FileReader& read)
      : main_file_(std::move(main_file)), read_(read) {}

  // The path of the file that a setting names, and its text, or the reason why it cannot be read.
  [[nodiscard]] std::string resolve(const std::string& path) const;
  [[nodiscard]] const std::variant<std::string, std::string>& text_of(const std::string& path);

  // The servers in a file, checked for `ring`. `reading`: where the file is named.
  // REQUIRES: text_of(path) is text.
  [[nodiscard]] std::vector<Server> servers_of(const std::string& path, const WrittenRing& ring,
                                               const Reading& reading);

  // Those that could be read, in the order of their first use.
  [[nodiscard]] std::vector<File> files() const;

 private:
  std::string main_file_;
  const FileReader& read_;
  std::map<std::string, std::variant<std::string, std::string>> texts_;
  std::map<std::string, std::unique_ptr<Parsed>> parsed_;  // null: no YAML, and reported
  std::vector<std::string> order_;
};

}  // namespace clockwise::config
