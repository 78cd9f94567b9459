#include "upstream/lookup.h"

#include <algorithm>
#include <boost/json.hpp>

namespace clockwise::upstream {
namespace {

namespace json = boost::json;

// The length of the UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool too_large = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

json::string readable(std::string_view text) {
  json::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0)
      out.append("\xef\xbf\xbd");
    else
      out.append(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

KeyPlace locate(const ring::Ring& ring, ring::Position position, std::uint32_t replicas) {
  KeyPlace place{position, {}};
  while (place.owners.size() < replicas) {
    const auto next = ring.successor(position, place.owners);
    if (!next) break;
    place.owners.push_back(*next);
  }
  return place;
}

json::object to_json(const config::Pool& pool, std::string_view key, const KeyPlace& place,
                     const std::optional<std::string>& previous) {
  json::object object{{"key", readable(key)},
                      {"hash", std::to_string(place.hash)},
                      {"server", nullptr},
                      {"address", nullptr}};
  if (!place.owners.empty()) {
    const config::Server& home = pool.servers[place.owners.front()];
    object["server"] = home.name;
    object["address"] = home.address.text;
  }
  json::array replicas;
  for (const ring::ServerIndex owner : place.owners)
    replicas.emplace_back(pool.servers[owner].name);
  object["replicas"] = std::move(replicas);
  object["previous"] = previous ? json::value(*previous) : json::value(nullptr);
  return object;
}

}  // namespace clockwise::upstream
