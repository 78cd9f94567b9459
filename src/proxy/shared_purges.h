// What proxies that share a store tell each other of purges.
//
// Each server of the pool has the list of them (cache/purge_list.h) under a key of its own; every
// second each is asked whether its list is still the one that is known here, by the sum of it that
// stands beside it. Where it is not, both are merged, and written where they differ. A purge of
// this proxy is written at once. One worker's; what takes long is done on a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/purge_log.h"
#include "proxy/shared_store.h"

namespace clockwise::proxy {

class SharedPurges {
 public:
  explicit SharedPurges(SharedStore& store);
  ~SharedPurges();

  // The servers of the newest snapshot.
  void configure();
  void on_tick();
  // Each server has been told of every purge of this proxy, or did not answer.
  [[nodiscard]] bool told() const;

 private:
  class Talk;  // with one server

  [[nodiscard]] cache::PurgeLog& log() const;
  void pack();
  void merge(const cache::PurgeList& theirs);
  void apply_waiting();

  SharedStore& store_;
  std::string key_;
  std::vector<std::unique_ptr<Talk>> talks_;
  std::string packed_;                     // the list as it is known here
  std::uint32_t sum_ = 0;                  // of it
  std::uint64_t changes_ = 0;              // of the log, that it was packed after
  bool empty_ = true;                      // it
  bool telling_ = false;                   // of a purge of this proxy
  io::Milliseconds due_ = 0;               // when all are asked again
  std::int64_t heard_ms_ = 0;              // since 1970: when a server was last in step
  std::vector<cache::PurgeRule> waiting_;  // for the thread
  std::thread applying_;
  std::atomic<bool> busy_{false};
};

}  // namespace clockwise::proxy
