// The two halves of reading nginx.conf: its upstreams, and the servers that lead to them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/names.h"
#include "import/nginx_key.h"
#include "import/nginx_syntax.h"
#include "import/readers.h"

namespace clockwise::importer {

inline void note(const Reading& reading, const Directive& directive, std::string message) {
  reading.notes.add(directive.source->name(), directive.place().line, std::move(message));
}

// `NAME is not carried over: …`, as nginx_advice() has it.
void note_advice(const Reading& reading, const Directive& directive);

// Adds the pool of one `upstream NAME { … }`.
void read_upstream(const Reading& reading, const Directive& upstream, const Variables& variables,
                   Names& names);

// Adds the listeners of all `server { … }` of `http`, carries the timeouts over that they and their
// locations set for a pool, and notes everything else in them.
// REQUIRES: the upstreams were read.
void read_servers(const Reading& reading, const std::vector<const Directive*>& https,
                  const Variables& variables);

}  // namespace clockwise::importer
