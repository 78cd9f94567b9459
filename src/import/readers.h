// One reader per format; read() in import.cpp chooses. Each fills pools and listeners, adds notes,
// and reports what its own program would refuse too.
#pragma once

#include <vector>

#include "config/load.h"
#include "config/source.h"
#include "import/notes.h"
#include "import/pool.h"

namespace clockwise::importer {

struct Reading {
  const config::Source& source;
  const config::FileReader& read;
  Import& out;
  Notes& notes;
  std::vector<config::Problem>& problems;

  void note(config::Place place, std::string message) const {
    notes.add(source.name(), place.line, std::move(message));
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
