#include "config/upstream_files.h"

#include <filesystem>

namespace clockwise::config {

std::vector<Server> read_upstream(const Field& root, const WrittenRing& ring) {
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

std::vector<Server> UpstreamFiles::servers_of(const std::string& path, const WrittenRing& ring,
                                              const Reading& reading) {
  const auto [parsed, fresh] = parsed_.try_emplace(path);
  if (fresh)
    parsed->second =
        Parsed::parse(path, std::get<0>(text_of(path)), reading.report, reading.environment);
  return parsed->second == nullptr ? std::vector<Server>{}
                                   : read_upstream(parsed->second->root(), ring);
}

std::vector<UpstreamFiles::File> UpstreamFiles::files() const {
  std::vector<File> out;
  for (const std::string& path : order_)
    if (const auto& text = texts_.at(path); text.index() == 0)
      out.push_back({path, std::get<0>(text)});
  return out;
}

}  // namespace clockwise::config
