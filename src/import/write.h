// An Import as the configuration of this program.
#pragma once

#include <string>

#include "import/pool.h"

namespace clockwise::importer {

// The whole file: the notes as comments, then listeners and pools. What equals the default of the
// configuration is left out, except what decides an owner.
[[nodiscard]] std::string to_yaml(const Import& import);

// The rings and servers of to_yaml() in the same words, without the rest: a configuration that
// loads whatever else there may be to mend.
[[nodiscard]] std::string rings_to_yaml(const Import& import);

}  // namespace clockwise::importer
