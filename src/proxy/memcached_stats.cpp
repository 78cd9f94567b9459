#include "proxy/memcached_stats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "upstream/directory.h"

namespace clockwise::proxy {

using metrics::ListenerCells;
using metrics::MemcachedCells;
using metrics::MemcachedResult;
using metrics::MemcachedVerb;

std::string memcached_version(const PoolView& view) {
  std::uint32_t lowest = 0;
  for (const upstream::MemcachedServer* server : view.memcached) {
    const std::uint32_t version = server->away() ? 0 : server->version();
    if (version != 0 && (lowest == 0 || version < lowest)) lowest = version;
  }
  if (lowest == 0) return {};
  return fmt::format("{}.{}.{}", lowest >> 20, (lowest >> 10) & 1023, lowest & 1023);
}

std::string memcached_stats(const ListenerSpec& listener, const PoolView& view,
                            const Context& context) {
  std::string out;
  const auto stat = [&](std::string_view name, auto value) {
    fmt::format_to(std::back_inserter(out), "STAT {} {}\r\n", name, value);
  };
  const auto& clients = listener.counters->cells;
  const auto client = [&](auto get) { return clients.sum(get); };
  const auto& commands = view.pool->counters->memcached;
  const auto done = [&](MemcachedVerb verb, MemcachedResult result) {
    return commands.sum(
        [=](const MemcachedCells& cells) { return at(at(cells.commands, verb), result).get(); });
  };
  const auto all = [&](MemcachedVerb verb) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += done(verb, static_cast<MemcachedResult>(i));
    return sum;
  };
  stat("pid", ::getpid());
  stat("uptime", (context.loop.now_ns() - context.started_ns) / 1'000'000'000);
  stat("time", std::time(nullptr));
  stat("version", memcached_version(view));
  stat("pointer_size", 8 * sizeof(void*));
  stat("curr_connections",
       client([](const ListenerCells& cells) { return cells.connections_active.get(); }));
  stat("total_connections",
       client([](const ListenerCells& cells) { return cells.accepted.get(); }));
  stat("rejected_connections", client([](const ListenerCells& cells) {
         std::uint64_t sum = 0;
         for (const auto& cell : cells.rejected) sum += cell.get();
         return sum;
       }));
  stat("cmd_get", all(MemcachedVerb::get));
  stat("cmd_set", all(MemcachedVerb::set) + all(MemcachedVerb::add) + all(MemcachedVerb::replace) +
                      all(MemcachedVerb::append));
  stat("cmd_touch", all(MemcachedVerb::touch));
  stat("get_hits", done(MemcachedVerb::get, MemcachedResult::hit));
  stat("get_misses", done(MemcachedVerb::get, MemcachedResult::miss));
  stat("delete_hits", done(MemcachedVerb::remove, MemcachedResult::hit));
  stat("delete_misses", done(MemcachedVerb::remove, MemcachedResult::miss));
  stat("bytes_read", client([](const ListenerCells& cells) { return cells.received_bytes.get(); }));
  stat("bytes_written", client([](const ListenerCells& cells) { return cells.sent_bytes.get(); }));
  stat("threads", clients.all().size());
  out.append("END\r\n");
  return out;
}

}  // namespace clockwise::proxy
