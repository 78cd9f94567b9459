// Small words for tests about the store of a cache.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/lines.h"
#include "cache/store.h"
#include "cache/vary.h"
#include "http/head.h"

namespace clockwise::cache::test {

inline constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB;

inline std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

// A part of the body that `seed` names: every eight octets tell which body and which place they are
// of.
inline std::string body_of(std::uint64_t seed, std::uint64_t size, std::uint64_t from = 0) {
  std::string out(size + 16, '\0');
  char* place = out.data();
  for (std::uint64_t word = from / 8; word * 8 < from + size; ++word, place += 8) {
    const std::uint64_t octets = mixed(seed * 0x9e3779b97f4a7c15ULL + word);
    std::memcpy(place, &octets, 8);
  }
  out.erase(0, from % 8);
  out.resize(size);
  return out;
}

// The head of a GET with these lines, ended by \n each.
struct Request {
  explicit Request(const std::string& lines = {}) : octets("GET / HTTP/1.1\r\nHost: a\r\n") {
    for (const char c : lines) octets += c == '\n' ? "\r\n" : std::string(1, c);
    octets += lines.empty() || lines.ends_with('\n') ? "\r\n" : "\r\n\r\n";
    std::size_t scanned = 0;
    EXPECT_EQ(http::scan_request(octets, {}, head, scanned), http::Progress::complete);
  }
  std::string octets;
  http::RequestHead head;
};

// What the origin sends.
struct Sent {
  std::string body = {};
  std::string vary = {};  // the value of the field
  std::string tags = {};
  bool declared = true;  // the length of the body
  std::uint32_t lifetime = 100;
  bool for_authorized = false;
  bool has_validator = false;
  std::string head = "Content-Type: text/plain\r\n";
};

inline std::string read(const Object& object, std::uint64_t from, std::uint64_t end) {
  std::string out;
  Cursor cursor(object, from);
  while (cursor.offset() < end) {
    const std::string_view run = cursor.run(end);
    if (run.empty()) break;
    out += run;
    cursor.advance(run.size());
  }
  return out;
}

inline std::string read(const ObjectRef& object) { return read(*object, 0, object->size()); }

class Waiter final : public Fill::Follower {
 public:
  void wake() noexcept override { ++woken; }
  int woken = 0;
};

class Nudged final : public Fill::Fetcher {
 public:
  void nudge() noexcept override { ++nudged; }
  int nudged = 0;
};

// A store, its clock, and the steps of those who use it. `lines` are those of the request.
class Caller {
 public:
  explicit Caller(std::uint64_t size = 8 * kMiB, std::uint64_t max_object = kMiB)
      : store(size, max_object), most(max_object), bytes_at_first(store.stats().bytes) {}

  Store::Found find(std::string_view key, const std::string& lines = {}) {
    const Request request(lines);
    return store.find(wanted(key, request), now);
  }
  Store::Joined join(std::string_view key, const std::string& lines = {}, bool alone = false) {
    const Request request(lines);
    const auto found = store.find(wanted(key, request), now).object;
    return store.join(wanted(key, request), found, alone, now);
  }
  // A fetch of one's own.
  std::shared_ptr<Fill> lead(std::string_view key, const std::string& lines = {},
                             bool alone = false) {
    auto joined = join(key, lines, alone);
    EXPECT_TRUE(joined.leads) << key;
    return joined.fill;
  }
  bool begin(Fill& fill, const Sent& sent, const std::string& lines = {}) {
    const auto named = selected(sent, lines);
    return store.begin(fill, draft(sent, named), now);
  }
  bool append(Fill& fill, std::string_view octets) { return store.append(fill, octets, most, now); }
  void complete(Fill& fill) { store.complete(fill, variants); }
  void confirm(Fill& fill, const ObjectRef& old, const Sent& sent, const std::string& lines = {}) {
    const auto named = selected(sent, lines);
    store.confirm(fill, old, draft(sent, named), variants, now);
  }
  // The whole body in pieces of `piece`, from a fetch that began.
  void bring(Fill& fill, const Sent& sent, std::size_t piece = SIZE_MAX) {
    for (std::string_view rest = sent.body; !rest.empty();) {
      EXPECT_TRUE(append(fill, rest.substr(0, piece)));
      rest.remove_prefix(std::min(piece, rest.size()));
    }
    complete(fill);
  }
  ObjectRef put(std::string_view key, const Sent& sent, const std::string& lines = {},
                std::size_t piece = SIZE_MAX) {
    const auto fill = lead(key, lines);
    EXPECT_TRUE(begin(*fill, sent, lines));
    bring(*fill, sent, piece);
    return fill->object();
  }
  // Gives up whatever is left of a store's content; what it holds then is what it held at first.
  std::uint64_t bytes_once_purged() {
    store.purge({});
    return store.stats().bytes;
  }

  Wanted wanted(std::string_view key, const Request& request) const {
    return {store.hash(key), key, request.octets, request.head.fields};
  }

  Store store;
  std::int64_t now = 1'000'000;
  std::uint64_t most;
  std::size_t variants = 100;
  const std::uint64_t bytes_at_first;

 private:
  static std::vector<Selector> selected(const Sent& sent, const std::string& lines) {
    const Request request(lines);
    return selectors(sent.vary.empty() ? Lines{} : Lines{sent.vary}, request.octets,
                     request.head.fields);
  }
  Draft draft(const Sent& sent, std::span<const Selector> named) const {
    Draft draft;
    draft.head = sent.head;
    draft.tags = sent.tags;
    draft.selectors = named;
    draft.terms.received_ms = now;
    draft.terms.lifetime = sent.lifetime;
    draft.terms.for_authorized = sent.for_authorized;
    draft.terms.has_validator = sent.has_validator;
    if (sent.declared) draft.length = sent.body.size();
    return draft;
  }
};

}  // namespace clockwise::cache::test
