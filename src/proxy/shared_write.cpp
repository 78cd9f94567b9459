#include "proxy/shared_write.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/crc32c.h"
#include "cache/purge_log.h"
#include "memcached/key.h"
#include "proxy/wall_clock.h"

namespace clockwise::proxy {

using cache::Entry;
using memcached::Reply;
using memcached::ReplyKind;
using metrics::MemcachedResult;
using metrics::MemcachedVerb;
using upstream::CallFailure;
using Result = metrics::SharedWrite;

namespace {

constexpr std::uint64_t kPartSize = 512 * 1024;

// What says which fields decide costs little and is asked for with each of its variants.
constexpr cache::Seconds kLifeOfVary = cache::Seconds{30} * 24 * 3600;

// No manifest outlives its parts.
constexpr cache::Seconds kPartsLonger = 60;

}  // namespace

SharedWrite::SharedWrite(SharedStore& store, Draft draft)
    : store_(store), draft_(std::move(draft)) {}

void SharedWrite::start() {
  if (const auto refused = plan()) return end(*refused);
  next();
}

// What is written where. Returns what it comes to where nothing is.
std::optional<Result> SharedWrite::plan() {
  SharedPlace& place = draft_.place;
  const auto now = static_cast<std::int64_t>(store_.context().loop.now());
  seconds_ = cache::time_left(draft_.object->terms(), now);
  if (seconds_ <= 0) return Result::outdated;
  generation_ = place.generation;
  new_vary_ = !draft_.names.empty() && draft_.names != place.names;
  if (new_vary_) generation_ = store_.context().random();
  key_ = draft_.names.empty() ? place.item.key
                              : cache::variant_key(place.item.key, generation_, draft_.selectors);

  const std::uint64_t length = draft_.object->size();
  const std::uint64_t most = store_.largest_value();
  front_ = cache::front_of(entry());
  if (front_.size() + length + cache::kSumSize <= most) return std::nullopt;
  if (most <= cache::kPartMore) return Result::too_large;
  part_size_ = static_cast<std::uint32_t>(std::min(kPartSize, most - cache::kPartMore));
  if ((length + part_size_ - 1) / part_size_ > cache::kMostParts) return Result::too_large;
  parts_generation_ = store_.context().random();
  front_ = cache::front_of(entry());
  if (front_.size() + cache::kSumSize > most) return Result::too_large;
  return std::nullopt;
}

Entry SharedWrite::entry() const {
  const cache::Object& object = *draft_.object;
  const auto now = static_cast<std::int64_t>(store_.context().loop.now());
  Entry entry;
  entry.kind = part_size_ > 0 ? Entry::Kind::manifest : Entry::Kind::answer;
  entry.status = object.status();
  entry.terms = object.terms();
  entry.terms.received_ms = std::max<std::int64_t>(0, wall_ms() - (now - entry.terms.received_ms));
  entry.asked_ms =
      store_.cache().purges->list()->as_seen(object.key(), object.tags(), draft_.asked_ms);
  entry.generation = parts_generation_;
  entry.length = object.size();
  entry.part_size = part_size_;
  entry.key = object.key();
  entry.head = object.head();
  entry.selectors = object.selectors();
  entry.tags = object.tags();
  return entry;
}

// --- step by step -------------------------------------------------------------------------------

void SharedWrite::next() {
  if (!store_.open()) return end(Result::error);
  if (step_ == Step::parts && part_ == (part_size_ == 0 ? 0 : parts())) step_ = Step::answer;
  switch (step_) {
    case Step::parts:
      return write_part();
    case Step::answer:
      return write_answer();
    case Step::vary:
      return write_vary();
  }
}

std::uint32_t SharedWrite::parts() const noexcept {
  return static_cast<std::uint32_t>((draft_.object->size() + part_size_ - 1) / part_size_);
}

void SharedWrite::write_part() {
  const std::uint64_t from = std::uint64_t{part_} * part_size_;
  const std::string key = cache::part_key(draft_.place.item.key, parts_generation_, part_);
  send(key, {}, cache::part_front(parts_generation_, part_),
       {from, std::min(from + part_size_, draft_.object->size())}, seconds_ + kPartsLonger);
}

// What nobody can have found yet is simply put there.
void SharedWrite::write_answer() {
  const SharedPlace& place = draft_.place;
  const Span body{0, part_size_ > 0 ? 0 : draft_.object->size()};
  const SharedItem* instead = draft_.names.empty() ? &place.item
                              : new_vary_          ? nullptr
                                                   : &place.variant;
  send(key_, instead, front_, body, seconds_);
}

void SharedWrite::write_vary() {
  Entry entry;
  entry.kind = Entry::Kind::vary;
  entry.terms.received_ms = entry.asked_ms = wall_ms();
  entry.generation = generation_;
  entry.key = draft_.object->key();
  entry.selectors = draft_.names;
  send(draft_.place.item.key, &draft_.place.item, cache::front_of(entry), {}, kLifeOfVary);
}

// Under `key`, in the place of `instead`, as far as that still stands there; where nothing is known
// to stand there, only if nothing does. Null: whatever stands there.
void SharedWrite::send(const std::string& key, const SharedItem* instead, std::string_view front,
                       Span body, cache::Seconds seconds) {
  const auto target = store_.target(key);
  if (!target) return end(Result::error);
  const config::Memcached& settings = store_.pool().pool->config.memcached;
  if (target->stands_in)
    seconds = std::clamp<cache::Seconds>(settings.failover_ttl.count() / 1000, 1, seconds);

  std::uint32_t sum = crc32c(front);
  std::vector<std::string_view> pieces;
  cache::Cursor cursor(*draft_.object, body.from);
  while (cursor.offset() < body.end) {
    const std::string_view run = cursor.run(body.end);
    sum = crc32c(run, sum);
    pieces.push_back(run);
    cursor.advance(run.size());
  }
  const std::string last = cache::packed_sum(sum) + "\r\n";
  pieces.push_back(last);

  const std::uint64_t size = front.size() + (body.end - body.from) + cache::kSumSize;
  const bool known =
      instead != nullptr && instead->server == target->server && instead->unique != 0;
  verb_ = instead == nullptr ? MemcachedVerb::set : known ? MemcachedVerb::set : MemcachedVerb::add;
  std::string line = instead == nullptr ? "set " : known ? "cas " : "add ";
  line.append(key).append(" 0 ");
  line.append(std::to_string(memcached::exptime_of(seconds, wall_ms() / 1000)));
  line.append(" ").append(std::to_string(size));
  if (known) line.append(" ").append(std::to_string(instead->unique));
  line.append("\r\n");
  sent_ += size;
  const bool asked =
      target->server->ask(*this, {.line = line,
                                  .data = front,
                                  .more = pieces,
                                  .shape = upstream::AnswerShape::line,
                                  .repeatable = true,
                                  .patience = store_.pool().pool->config.timeouts.response});
  if (!asked) end(Result::error);
}

bool SharedWrite::on_reply(const Reply& reply) {
  reply_ = reply.kind;
  too_large_ = reply.kind == ReplyKind::server_error && reply.rest.starts_with("object too large");
  return reply.kind == ReplyKind::stored || reply.kind == ReplyKind::not_stored ||
         reply.kind == ReplyKind::exists || reply.kind == ReplyKind::not_found ||
         memcached::is_error(reply.kind);
}

void SharedWrite::on_answered() {
  const bool error = memcached::is_error(reply_);
  const bool stored = reply_ == ReplyKind::stored;
  store_.count(verb_, stored  ? MemcachedResult::stored
                      : error ? MemcachedResult::error
                              : MemcachedResult::not_stored);
  if (!stored)
    return end(too_large_ ? Result::too_large : error ? Result::error : Result::outdated);
  if (step_ == Step::parts) {
    ++part_;
    return next();
  }
  const bool more = step_ == Step::answer && new_vary_;
  if (!more) return end(Result::stored);
  step_ = Step::vary;
  next();
}

void SharedWrite::on_failed(CallFailure) {
  store_.count(verb_, MemcachedResult::error);
  end(Result::error);
}

void SharedWrite::end(Result result) {
  if (result == Result::stored) store_.account(sent_, seconds_);
  // Whoever waits for it need not any more.
  if (result != Result::stored) {
    store_.release(draft_.place.item);
    store_.release(draft_.place.variant);
  }
  store_.written(*this, result);
}

}  // namespace clockwise::proxy
