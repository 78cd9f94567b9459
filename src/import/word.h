// One word of a configuration file and where it stands.
#pragma once

#include <string>

#include "config/source.h"

namespace clockwise::importer {

struct Word {
  std::string text;  // quotes taken off, escapes resolved
  config::Place place;
};

}  // namespace clockwise::importer
