// One answer on its way into the second store of a cache, after its client has got it.
//
// Parts go one after another, then what leads to them, so that a server is never asked to take more
// than one value at a time, and whoever reads finds all or nothing. What others have put in its
// place meanwhile stays. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cache/entry.h"
#include "cache/store.h"
#include "proxy/shared_lookup.h"
#include "proxy/shared_store.h"

namespace clockwise::proxy {

class SharedWrite final : upstream::MemcachedCall {
 public:
  struct Draft {
    std::shared_ptr<cache::Store> holder;  // of the object
    cache::ObjectRef object;
    std::int64_t asked_ms = 0;  // since 1970
    SharedPlace place;
    // Which fields decide, with commas between them, and what the request said to them (packed, see
    // cache/vary.h); empty: none does.
    std::string names, selectors;
  };

  SharedWrite(SharedStore& store, Draft draft);

  // Ends with SharedStore::written(), maybe at once.
  void start();
  [[nodiscard]] std::uint64_t octets() const noexcept { return draft_.object->size(); }

 private:
  enum class Step : std::uint8_t { parts, answer, vary };
  struct Span {
    std::uint64_t from = 0, end = 0;
  };

  [[nodiscard]] bool on_reply(const memcached::Reply& reply) override;
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override;
  void on_failed(upstream::CallFailure failure) override;

  [[nodiscard]] std::optional<metrics::SharedWrite> plan();
  [[nodiscard]] cache::Entry entry() const;
  [[nodiscard]] std::uint32_t parts() const noexcept;
  void next();
  void write_part();
  void write_answer();
  void write_vary();
  void send(const std::string& key, const SharedItem* instead, std::string_view front, Span body,
            cache::Seconds seconds);
  void end(metrics::SharedWrite result);

  SharedStore& store_;
  Draft draft_;
  Step step_ = Step::parts;
  bool new_vary_ = false;
  bool too_large_ = false;        // the server says so
  std::uint64_t generation_ = 0;  // of the variants
  std::uint64_t parts_generation_ = 0;
  std::uint32_t part_size_ = 0;  // 0: it is one value
  std::uint32_t part_ = 0;       // the next one
  std::string key_;              // of the answer
  std::string front_;            // the same
  cache::Seconds seconds_ = 0;   // that it is of use
  std::uint64_t sent_ = 0;       // octets of all values
  metrics::MemcachedVerb verb_ = metrics::MemcachedVerb::set;
  memcached::ReplyKind reply_ = memcached::ReplyKind::error;
};

}  // namespace clockwise::proxy
