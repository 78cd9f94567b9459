#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "config/field.h"
#include "config/utf8.h"
#include "import/readers.h"

namespace clockwise::importer {
namespace {

void dispatch(Format format, const Reading& reading) {
  switch (format) {
    case Format::nginx:
      return read_nginx(reading);
    case Format::nutcracker:
      return read_nutcracker(reading);
    case Format::haproxy:
      return read_haproxy(reading);
    case Format::mcrouter:
      return read_mcrouter(reading);
    case Format::envoy:
      return read_envoy(reading);
  }
}

// A configuration needs a listener; a file of upstreams alone has none.
void add_listener(Import& import, Notes& notes) {
  if (!import.listeners.empty()) return;
  const Pool& pool = import.pools.front();
  const bool memcached = pool.protocol == Protocol::memcached;
  Listener listener;
  listener.name = memcached ? "memcached" : "web";
  listener.address = memcached ? "127.0.0.1:5000" : "127.0.0.1:8080";
  listener.protocol = pool.protocol;
  listener.pool = pool.name;
  notes.add(import.file, 1,
            fmt::format("no listener leads to a pool: {} with pool {} stands in for it, change it "
                        "to where clients connect",
                        listener.address, pool.name));
  import.listeners.push_back(std::move(listener));
}

// Texts that a configuration cannot hold, such as a server name with a line break in it.
void check_texts(const Import& import, const config::Source& source, Problems& problems) {
  const auto check = [&](const Pool& pool, std::string_view text) {
    if (config::utf8::is_one_line(text)) return;
    problems.push_back(
        source.problem({}, fmt::format("{}: {} is not one line of printable text",
                                       printable(pool.source_name), config::quoted(text))));
  };
  for (const Pool& pool : import.pools) {
    check(pool, pool.key);
    check(pool, pool.memcached.key);
    check(pool, pool.memcached.default_type);
    for (const auto& [extension, type] : pool.memcached.types)
      for (const std::string* text : {&extension, &type}) check(pool, *text);
    check(pool, pool.scheme.hash_tag);
    for (const Server& server : pool.servers)
      for (const std::string* text : {&server.address, &server.label, &server.zone})
        check(pool, *text);
  }
  for (const Listener& listener : import.listeners) {
    check(import.pools.front(), listener.address);
    for (const Route& route : listener.routes) check(import.pools.front(), route.key_prefix);
  }
}

}  // namespace

Outcome read(Format format, const config::Source& source, const Files& files) {
  Import import;
  import.file = source.name();
  import.format = to_string(format);
  Notes notes;
  Problems problems, left_out;
  dispatch(format, {.source = source,
                    .files = files,
                    .out = import,
                    .notes = notes,
                    .problems = problems,
                    .left_out = left_out});
  if (problems.empty() && import.pools.empty()) {
    problems.push_back(source.problem(
        {}, left_out.empty()
                ? fmt::format("has no pool to import: nothing in it reads as {}'s", import.format)
                : "has no pool to import, since none of these becomes one:"));
    std::ranges::move(left_out, std::back_inserter(problems));
  }
  if (problems.empty()) check_texts(import, source, problems);
  if (!problems.empty()) {
    for (config::Problem& problem : problems) problem.message = printable(problem.message);
    return problems;
  }
  add_listener(import, notes);
  import.notes = notes.take();
  return import;
}

}  // namespace clockwise::importer
