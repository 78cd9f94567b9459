// One fetch that fills the store: what it is for, and the request that it makes.
//
// It runs as an exchange of its own, under a session without a client, on the loop of the request
// that began it: with the routing, the tries and the deadlines of any other, and unimpressed by
// clients that come and go.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/fill.h"
#include "cache/policy.h"
#include "http/head.h"
#include "metrics/cells.h"
#include "proxy/fill_watch.h"
#include "proxy/item_lease.h"
#include "proxy/shared_lookup.h"
#include "upstream/routing.h"

namespace clockwise::proxy {

class Exchange;
struct PoolView;

struct Fetch {
  PoolView* view = nullptr;
  upstream::CacheUse use;
  metrics::CacheCells* cells = nullptr;  // of `use`
  std::shared_ptr<cache::Fill> fill;
  std::shared_ptr<FillWatch> watch;
  cache::Asked asked;          // by the request that began it
  cache::ObjectRef stale;      // that is validated, or would be replaced; may be null
  Exchange* reader = nullptr;  // that began it, while it waits; null in the background
  metrics::CacheFetch reason = metrics::CacheFetch::miss;
  PoolView* items = nullptr;  // of memcached, where the answer goes in the end; null: nowhere
  std::string item_key;
  std::shared_ptr<ItemLease> lease;  // on that item; null: nobody else is waited for
  std::int64_t requested_ms = 0;     // wall clock
  bool paused = false;               // until those who read have caught up

  std::unique_ptr<SharedLookup> shared;  // null: there is no second store

  bool goes_on = false;  // although nobody waits for it any more

  [[nodiscard]] bool needs_nobody() const noexcept {
    return goes_on || reason == metrics::CacheFetch::background ||
           reason == metrics::CacheFetch::prefetch;
  }
  // Whether the origin is asked if the stale one is still right.
  [[nodiscard]] bool validates() const { return stale && stale->terms().has_validator; }
};

// For us alone: no client sees it.
inline constexpr std::string_view kSurrogateControl = "surrogate-control";

// The request to the origin for what `head` asks: the whole, unconditionally, or on condition that
// `validates` has changed. Fields that would make the answer another one, but are no part of the
// key, are left out.
[[nodiscard]] std::string fetch_request(std::string_view octets, const http::RequestHead& head,
                                        const cache::Object* validates);

// The conditions of such a request.
[[nodiscard]] std::string conditions_of(const cache::Object& validated);

// The lines among `dropped`, and Age, as they were received: for the one who asked.
[[nodiscard]] std::string lines_for_reader(std::string_view octets, const http::ResponseHead& head,
                                           const std::vector<std::string>& dropped);

// The lines of an answer that are stored: as received, without what concerns the connection or the
// framing, without Age, and without `dropped`. A Date is added where there is none.
[[nodiscard]] std::string stored_head(std::string_view octets, const http::ResponseHead& head,
                                      const std::vector<std::string>& dropped,
                                      std::string_view date);

// The head of a stored answer after the origin has confirmed it: the lines of the 304 in the place
// of those of the same name (RFC 9111 3.2).
[[nodiscard]] std::string confirmed_head(const cache::Object& stored, std::string_view octets,
                                         const http::ResponseHead& head,
                                         const std::vector<std::string>& dropped);

}  // namespace clockwise::proxy
