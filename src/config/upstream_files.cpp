#include "config/upstream_files.h"

#include <filesystem>

#include "config/yaml.h"

namespace clockwise::config {

std::vector<Server> read_upstream_text(const std::string& name, const std::string& text,
                                       const WrittenRing& ring, Report& report,
                                       const Environment& environment) {
  report.begin_file(name);
  auto decoded = Source::decode(name, text);
  if (auto* problem = std::get_if<Problem>(&decoded)) {
    report.error(std::move(*problem));
    return {};
  }
  const Source& source = std::get<Source>(decoded);
  const std::optional<Document> document = parse_yaml(source, report);
  if (!document) return {};

  const Reading reading{source, report, environment};
  const Field root(reading, *document->root, "", document->root->place);
  std::vector<Server> servers;
  MapReader map(root);
  map.require("servers", [&](const Field& list) { servers = read_servers(list, ring); });
  map.finish();
  return servers;
}

std::string UpstreamFiles::resolve(const std::string& path) const {
  return (std::filesystem::path(main_file_).parent_path() / path).string();
}

const std::variant<std::string, std::string>& UpstreamFiles::text_of(const std::string& path) {
  const auto known = texts_.find(path);
  if (known != texts_.end()) return known->second;
  order_.push_back(path);
  return texts_.emplace(path, read_(path)).first->second;
}

std::vector<UpstreamFiles::File> UpstreamFiles::files() const {
  std::vector<File> out;
  for (const std::string& path : order_)
    if (const auto& text = texts_.at(path); text.index() == 0)
      out.push_back({path, std::get<0>(text)});
  return out;
}

}  // namespace clockwise::config
