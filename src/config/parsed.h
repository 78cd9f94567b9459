// One file that was read: its text, its tree, and what the walk through it needs.
//
// Fields point into it, so it never moves and lives as long as they do. The report and the
// environment are the caller's and outlive it too.
#pragma once

#include <memory>
#include <string>

#include "config/field.h"

namespace clockwise::config {

class Parsed {
 public:
  // Nothing when the text is no YAML tree; the problems stand in the report, under `name`.
  [[nodiscard]] static std::unique_ptr<Parsed> parse(const std::string& name,
                                                     const std::string& text, Report& report,
                                                     const Environment& environment);

  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  [[nodiscard]] Field root() const {
    return Field(reading_, *document_.root, "", document_.root->place);
  }

 private:
  Parsed(Source source, Document document, Report& report, const Environment& environment);

  Source source_;
  Document document_;
  Reading reading_;
};

}  // namespace clockwise::config
