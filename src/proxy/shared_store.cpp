#include "proxy/shared_store.h"

#include <algorithm>
#include <utility>

#include "proxy/memcached_target.h"
#include "proxy/shared_purges.h"
#include "proxy/shared_write.h"

namespace clockwise::proxy {

using memcached::Reply;
using memcached::ReplyKind;
using metrics::at;
using upstream::AnswerShape;
using upstream::CallFailure;
using upstream::MemcachedServer;

namespace {

// What a server's limit for an item counts beside the value: the longest key, and its own account.
constexpr std::uint32_t kBesideValue = 512;

// Late so often in a row, a server is not asked for a while.
constexpr std::uint32_t kMostLate = 3;

// Octets that look-ups, and those that writes may have in memory at a time.
constexpr std::size_t kMostHeld = std::size_t{32} << 20;

constexpr std::int64_t kMinute = 60'000;

// What another key or other rules about cookies have stored is nothing that may be given by these.
std::string space_of(const config::Cache& config) {
  if (config::same_content(config, {})) return config.pool_namespace;
  std::string rules = config.key + '\n';
  for (const std::string& ignored : config.key_ignore) rules += ignored + '\n';
  rules += std::to_string(static_cast<int>(config.set_cookie));
  rules += config.surrogate_control ? 's' : '-';
  return cache::entry_key(config.pool_namespace, rules);
}

}  // namespace

// Ends with its answer.
class SharedStore::Removal final : public upstream::MemcachedCall {
 public:
  static void ask(MemcachedServer& server, std::string_view key, const std::string& line,
                  metrics::Cell* counted, std::chrono::milliseconds patience) {
    auto removal = std::unique_ptr<Removal>(new Removal(server, key, counted));
    const bool asked = server.ask(*removal, {.line = line,
                                             .data = {},
                                             .shape = AnswerShape::line,
                                             .repeatable = true,
                                             .patience = patience});
    if (!asked) return removal->missed();
    (void)removal.release();
  }

 private:
  Removal(MemcachedServer& server, std::string_view key, metrics::Cell* counted)
      : server_(server), key_(key), counted_(counted) {}

  bool on_reply(const Reply& reply) override {
    switch (reply.kind) {
      case ReplyKind::deleted:
        if (counted_ != nullptr) counted_->add();
        return true;
      case ReplyKind::not_found:
      case ReplyKind::meta_done:
      case ReplyKind::meta_exists:
      case ReplyKind::meta_not_found:
        return true;
      default:
        return memcached::is_error(reply.kind);
    }
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override { delete this; }
  void on_failed(CallFailure) override {
    missed();
    delete this;
  }
  // What only said that somebody fetches does no harm.
  void missed() {
    if (counted_ != nullptr) server_.missed_write(key_);
  }

  MemcachedServer& server_;
  const std::string key_;
  metrics::Cell* const counted_;
};

SharedStore::SharedStore(Context& context)
    : context_(context), budgets_(context.loop), moments_(context.loop) {}

SharedStore::~SharedStore() = default;

void SharedStore::configure(const upstream::CacheUse* use, PoolView* pool) {
  pool_ = use != nullptr ? pool : nullptr;
  late_.clear();
  if (pool_ == nullptr) {
    purges_.reset();
    return;
  }
  cache_ = use->cache;
  space_ = space_of(cache_->config);
  counters_ = use->counters->shared;
  cells_ = &counters_->at(context_.worker);
  if (context_.worker != 0) return;
  if (!purges_) purges_ = std::make_unique<SharedPurges>(*this);
  purges_->configure();
}

void SharedStore::on_tick() {
  if (cells_ != nullptr) forget_expired();
  if (purges_) purges_->on_tick();
}

bool SharedStore::purges_told() const { return !purges_ || purges_->told(); }

void SharedStore::stop() {
  budgets_.stop();
  moments_.stop();
  purges_.reset();
  pool_ = nullptr;
}

// --- whom to ask --------------------------------------------------------------------------------

std::uint32_t SharedStore::largest_value() const noexcept {
  const std::uint32_t item = pool_->largest_item;
  return item > 2 * kBesideValue ? item - kBesideValue : item / 2;
}

std::optional<SharedStore::Target> SharedStore::target(std::string_view key) {
  if (pool_->pool->ring->empty()) return std::nullopt;
  const auto target = target_of(*pool_, key, position_of(*pool_, key), context_);
  if (!target) return std::nullopt;
  return Target{target->server, target->stands_in()};
}

bool SharedStore::ask(upstream::MemcachedCall& call, MemcachedServer& server,
                      std::string_view line) {
  const auto late = late_.find(&server);
  if (late != late_.end() && late->second.in_a_row >= kMostLate) {
    if (context_.loop.now() < late->second.asked_again) return false;
    // This one finds out whether it is better now.
    const auto pause = pool_->pool->config.memcached.retry_interval;
    late->second.asked_again = context_.loop.now() + static_cast<io::Milliseconds>(pause.count());
  }
  return server.ask(call, {.line = line,
                           .data = {},
                           .shape = AnswerShape::meta,
                           .repeatable = true,
                           .patience = pool_->pool->config.timeouts.response});
}

void SharedStore::was_late(const MemcachedServer& server) {
  Lateness& late = late_[&server];
  if (++late.in_a_row < kMostLate || pool_ == nullptr) return;
  const auto pause = pool_->pool->config.memcached.retry_interval;
  late.asked_again = context_.loop.now() + static_cast<io::Milliseconds>(pause.count());
}

void SharedStore::count(metrics::MemcachedVerb verb, metrics::MemcachedResult result) noexcept {
  if (pool_ != nullptr) at(at(pool_->memcached_cells->commands, verb), result).add();
}

bool SharedStore::hold(std::size_t octets) noexcept {
  if (held_ + octets > kMostHeld) return false;
  held_ += octets;
  return true;
}

// --- writing and removing -----------------------------------------------------------------------

void SharedStore::write(std::unique_ptr<SharedWrite> write) {
  SharedWrite& begun = *writes_.emplace_back(std::move(write));
  const std::size_t octets = begun.octets();
  const bool fits = writing_ == 0 || writing_ + octets <= kMostHeld;
  writing_ += octets;
  if (!open() || !fits) return written(begun, metrics::SharedWrite::busy);
  begun.start();
}

void SharedStore::written(SharedWrite& write, metrics::SharedWrite result) {
  at(cells_->writes, result).add();
  writing_ -= write.octets();
  std::erase_if(writes_, [&](const auto& one) { return one.get() == &write; });
}

void SharedStore::remove(std::string_view key, cache::EvictionReason reason) {
  if (!open() || pool_->pool->ring->empty()) return;
  MemcachedServer& home = home_of(*pool_, position_of(*pool_, key));
  remove_at(home, key, reason);
  const auto now = target(key);
  if (now && now->server != &home) remove_at(*now->server, key, reason);
  MemcachedServer* const before = previous_home_of(*pool_, key, context_);
  if (before != nullptr && before != &home) remove_at(*before, key, reason);
}

std::string SharedStore::item_key(std::string_view key) const {
  return cache::entry_key(space_, key);
}

void SharedStore::remove_purged() {
  cache::PurgeLog& log = *cache_->purges;
  if (!log.has_keys()) return;
  for (const std::string& key : log.take_keys())
    remove(item_key(key), cache::EvictionReason::purged);
}

void SharedStore::remove_at(MemcachedServer& server, std::string_view key,
                            std::optional<cache::EvictionReason> reason) {
  std::string line = "delete ";
  line.append(key).append("\r\n");
  metrics::Cell* const counted = reason ? &at(cells_->evictions, *reason) : nullptr;
  Removal::ask(server, key, line, counted, pool_->pool->config.timeouts.response);
}

void SharedStore::release(const SharedItem& item) {
  if (!open() || !item.useless || item.unique == 0) return;
  if (std::ranges::find(pool_->memcached, item.server) == pool_->memcached.end()) return;
  const std::string line = "md " + item.key + " C" + std::to_string(item.unique) + "\r\n";
  Removal::ask(*item.server, item.key, line, nullptr, pool_->pool->config.timeouts.response);
}

// --- what is there ------------------------------------------------------------------------------

void SharedStore::account(std::uint64_t octets, cache::Seconds seconds) {
  const auto now = static_cast<std::int64_t>(context_.loop.now());
  Written& written = written_[(now + seconds * 1000) / kMinute + 1];
  written.octets += octets;
  ++written.objects;
  cells_->bytes.add(octets);
  cells_->objects.add();
}

void SharedStore::forget_expired() {
  const auto now = static_cast<std::int64_t>(context_.loop.now());
  while (!written_.empty() && written_.begin()->first * kMinute <= now) {
    const Written& gone = written_.begin()->second;
    cells_->bytes.sub(gone.octets);
    cells_->objects.sub(gone.objects);
    at(cells_->evictions, cache::EvictionReason::expired).add(gone.objects);
    written_.erase(written_.begin());
  }
}

}  // namespace clockwise::proxy
