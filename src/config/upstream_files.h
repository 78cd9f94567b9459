// The upstream files that a configuration names: found beside it, read once each.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "config/field.h"
#include "config/servers.h"

namespace clockwise::config {

// Reads `text` as an upstream file, `servers:` and nothing else, and checks it for `ring`.
[[nodiscard]] std::vector<Server> read_upstream_text(const std::string& name,
                                                     const std::string& text,
                                                     const WrittenRing& ring, Report& report,
                                                     const Environment& environment);

class UpstreamFiles {
 public:
  struct File {
    std::string path;
    std::string text;
  };

  // `main_file`: its folder is where relative paths start.
  UpstreamFiles(std::string main_file, const FileReader& read)
      : main_file_(std::move(main_file)), read_(read) {}

  // The path of the file that `field` names, and its text, or the reason why it cannot be read.
  [[nodiscard]] std::string resolve(const std::string& path) const;
  [[nodiscard]] const std::variant<std::string, std::string>& text_of(const std::string& path);

  // Those that could be read, in the order of their first use.
  [[nodiscard]] std::vector<File> files() const;

 private:
  std::string main_file_;
  const FileReader& read_;
  std::map<std::string, std::variant<std::string, std::string>> texts_;
  std::vector<std::string> order_;
};

}  // namespace clockwise::config
