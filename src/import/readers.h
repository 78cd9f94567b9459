// One reader per format; read() in import.cpp chooses. Each fills pools and listeners, adds notes,
// and reports what its own program would refuse too.
#pragma once

#include <vector>

#include "config/load.h"
#include "config/source.h"
#include "import/files.h"
#include "import/notes.h"
#include "import/pool.h"

namespace clockwise::importer {

struct Reading {
  const config::Source& source;
  const Files& files;
  Import& out;
  Notes& notes;
  std::vector<config::Problem>& problems;
  std::vector<config::Problem>& left_out;  // why what looks like a pool becomes none

  void note(config::Place place, std::string message) const {
    notes.add(source.name(), place.line, std::move(message));
  }
  // A note, and an answer to why there is no pool where none is left.
  void leave_out(const config::Source& in, config::Place place, const std::string& message) const {
    notes.add(in.name(), place.line, message);
    left_out.push_back(in.problem(place, message));
  }
  void problem(config::Place place, std::string message) const {
    problems.push_back(source.problem(place, std::move(message)));
  }
};

void read_nginx(const Reading& reading);
void read_nutcracker(const Reading& reading);
void read_haproxy(const Reading& reading);
void read_mcrouter(const Reading& reading);
void read_envoy(const Reading& reading);

}  // namespace clockwise::importer
