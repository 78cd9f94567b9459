// The key of a request as the configuration writes it (see http/key_template.h).
#pragma once

#include <string>
#include <vector>

#include "config/field.h"

namespace clockwise::config {

// Templates; empty text means "{uri}".

// Of a ring. Warns of a key that is the same for every request.
void read_key(const Field& field, std::string& key);
// Of a cache. Warns of a key under which one page would be given for another.
void read_cache_key(const Field& field, std::string& key);

// The query parameters that `key` leaves out where it says {uri:normalized}, in the form of
// Ring::key_ignore. REQUIRES: `key` was read.
void read_key_ignore(const Field& field, const std::string& key, std::vector<std::string>& ignore);

}  // namespace clockwise::config
