// The fetch whose cache has a second store: what stands there is taken instead of an origin's
// answer, or validated; what the origin sends is put there.
#include <algorithm>
#include <utility>

#include "cache/purge_log.h"
#include "cache/vary.h"
#include "proxy/exchange.h"
#include "proxy/session.h"
#include "proxy/shared_write.h"
#include "proxy/wall_clock.h"

namespace clockwise::proxy {

using cache::Entry;
using metrics::at;
using Effect = cache::PurgeList::Effect;
using Use = SharedLookup::Use;

namespace {

// As the clocks of two machines agree, the same answer is the same age.
constexpr std::int64_t kSameAge = 1'000;

std::string names_of(const std::vector<cache::Selector>& selectors) {
  std::string names;
  for (const cache::Selector& one : selectors) {
    if (!names.empty()) names += ',';
    names += one.name;
  }
  return names;
}

}  // namespace

// The origin is asked if nothing comes of it.
void Exchange::ask_shared() {
  if (fetch_->items != nullptr) return ask_lease();
  SharedStore* const store = view_->shared;
  if (store == nullptr || !store->open()) return ask_origin();
  SharedLookup::Owner& owner = *this;
  fetch_->shared = std::make_unique<SharedLookup>(*store, owner);
  phase_ = Phase::sharing;
  const bool waits = fetch_->use.cache->config.coalesce && !fetch_->asked.authorization;
  if (!fetch_->shared->start(fetch_->fill->key(), waits)) ask_origin();
}

void Exchange::ask_origin() {
  phase_ = Phase::routing;
  fetch_->requested_ms = wall_ms();
  if (fetch_->shared) {
    if (fetch_->validates() && fetch_->reason == metrics::CacheFetch::miss)
      fetch_->reason = metrics::CacheFetch::revalidate;
    put_conditions();
  }
  at(fetch_->cells->fetches, fetch_->reason).add();
  choose_server();
}

// What was begun without them, since another answer could have been found to validate.
void Exchange::put_conditions() {
  if (fetch_->validates()) {
    std::string request(session_->client().in().view());
    request.resize(request.size() - 2);
    request.append(conditions_of(*fetch_->stale)).append("\r\n");
    session_->put_request(request);
    head_size_ = request_octets_ = static_cast<std::uint32_t>(request.size());
  }
  rescan_head();
}

std::string Exchange::selectors_of(std::string_view names) {
  rescan_head();
  return cache::pack(
      cache::selectors({names}, session_->client().in().view(), context_.request.fields));
}

// As if it had been received here when it was received there.
cache::Terms Exchange::terms_here(const Entry& entry) const {
  cache::Terms terms = entry.terms;
  terms.received_ms = now_ms() - std::max<std::int64_t>(0, wall_ms() - terms.received_ms);
  const Effect purged = fetch_->use.cache->purges->on(entry, wall_ms());
  if (purged == Effect::stale) {
    const auto age = static_cast<std::uint32_t>(cache::current_age(terms, now_ms()));
    terms.lifetime = std::min(terms.lifetime, age);
    terms.stale_while_revalidate = 0;
  }
  return terms;
}

Use Exchange::use_of(const Entry& entry) {
  const upstream::Cache& cache = *fetch_->use.cache;
  if (cache.purges->on(entry, wall_ms()) == Effect::gone) return Use::none;
  if (entry.length > std::min(cache.config.max_object, cache.store->largest())) return Use::none;
  rescan_head();
  if (!cache::matches(cache::unpack(entry.selectors), session_->client().in().view(),
                      context_.request.fields))
    return Use::none;
  const cache::Terms terms = terms_here(entry);
  if (fetch_->asked.authorization && !terms.for_authorized) return Use::none;
  const cache::ObjectRef& mine = fetch_->stale;
  if (mine && terms.received_ms <= mine->terms().received_ms + kSameAge) return Use::none;
  if (cache::use_of(terms, fetch_->asked, now_ms(), cache.policy) == cache::Use::fresh)
    return Use::hit;
  return terms.has_validator || cache::may_stand_in(terms, now_ms()) ? Use::stale : Use::none;
}

void Exchange::on_shared(SharedLookup::Result result) {
  context_.loop.refresh();
  if (result != SharedLookup::Result::found) return ask_origin();
  const Entry& entry = fetch_->shared->entry();
  const auto selectors = cache::unpack(entry.selectors);
  const cache::Draft draft{.status = entry.status,
                           .head = entry.head,
                           .tags = entry.tags,
                           .selectors = selectors,
                           .terms = terms_here(entry),
                           .length = entry.length,
                           .found = fetch_->shared->use() == Use::hit};
  const std::vector<std::string_view> body = fetch_->shared->body();
  if (draft.found) return take_shared(draft, body);
  const upstream::Cache& cache = *fetch_->use.cache;
  auto stale = cache.store->adopt(*fetch_->fill, draft, body, cache.config.vary_limit, now_ms());
  if (stale) fetch_->stale = std::move(stale);
  ask_origin();
}

// It is what the origin would have said.
void Exchange::take_shared(const cache::Draft& draft, std::span<const std::string_view> body) {
  const upstream::Cache& cache = *fetch_->use.cache;
  cache::Fill& fill = *fetch_->fill;
  if (!cache.store->begin(fill, draft, now_ms())) return ask_origin();
  status_ = draft.status;
  count_request(metrics::code_of(status_));
  for (const std::string_view piece : body)
    if (!cache.store->append(fill, piece, cache.config.max_object, now_ms())) return fetch_cut();
  cache.store->complete(fill, cache.config.vary_limit);
  end_fetch();
}

// What was fetched, or confirmed, and is kept here. REQUIRES: the fill is done.
void Exchange::share() {
  if (fetch_->items != nullptr) return fill_item();
  if (!fetch_->shared) return;
  SharedStore& store = fetch_->shared->store();
  SharedWrite::Draft draft{.holder = fetch_->use.cache->store,
                           .object = fetch_->fill->object(),
                           .asked_ms = fetch_->requested_ms,
                           .place = fetch_->shared->take_place(),
                           .names = {},
                           .selectors = {}};
  if (!draft.object->selectors().empty()) {
    // With those that decided before: where answers name different ones, each finds its place.
    draft.names = names_of(cache::unpack(draft.object->selectors()));
    if (!draft.place.names.empty()) draft.names.append(",").append(draft.place.names);
    rescan_head();
    const auto said =
        cache::selectors({draft.names}, session_->client().in().view(), context_.request.fields);
    draft.names = names_of(said);
    draft.selectors = cache::pack(said);
  }
  store.write(std::make_unique<SharedWrite>(store, std::move(draft)));
}

}  // namespace clockwise::proxy
