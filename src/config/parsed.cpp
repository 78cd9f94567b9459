#include "config/parsed.h"

#include "config/yaml.h"

namespace clockwise::config {

Parsed::Parsed(Source source, Document document, Report& report, const Environment& environment)
    : source_(std::move(source)),
      document_(std::move(document)),
      reading_{source_, report, environment} {}

std::unique_ptr<Parsed> Parsed::parse(const std::string& name, const std::string& text,
                                      Report& report, const Environment& environment) {
  report.begin_file(name);
  auto decoded = Source::decode(name, text);
  if (auto* problem = std::get_if<Problem>(&decoded)) {
    report.error(std::move(*problem));
    return nullptr;
  }
  Source& source = std::get<Source>(decoded);
  std::optional<Document> document = parse_yaml(source, report);
  if (!document) return nullptr;
  return std::unique_ptr<Parsed>(
      new Parsed(std::move(source), *std::move(document), report, environment));
}

}  // namespace clockwise::config
