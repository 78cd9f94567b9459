#include "proxy/shared_purges.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "proxy/wall_clock.h"

namespace clockwise::proxy {

using cache::PurgeList;
using cache::PurgeRule;
using memcached::Reply;
using memcached::ReplyKind;
using upstream::CallFailure;
using upstream::MemcachedServer;

namespace {

constexpr io::Milliseconds kEvery = 1'000;

}  // namespace

class SharedPurges::Talk final : upstream::MemcachedCall {
 public:
  Talk(SharedPurges& home, MemcachedServer& server) : home_(home), server_(server) {}

  [[nodiscard]] MemcachedServer& server() const noexcept { return server_; }
  using upstream::MemcachedCall::under_way;
  // Looks whether the server is in step; what comes while it does is looked at after that.
  void look() {
    again_ = under_way();
    if (again_) return;
    step_ = Step::look;
    ask("mg " + home_.key_ + " f\r\n", {}, upstream::AnswerShape::meta);
  }

 private:
  enum class Step : std::uint8_t { look, read, write };

  void ask(const std::string& line, std::string_view data, upstream::AnswerShape shape) {
    kind_ = ReplyKind::error;
    unique_ = 0;
    value_.clear();
    (void)server_.ask(*this, {.line = line,
                              .data = data,
                              .shape = shape,
                              .repeatable = true,
                              .patience = home_.store_.pool().pool->config.timeouts.response});
  }

  bool on_reply(const Reply& reply) override {
    kind_ = reply.kind;
    sum_ = memcached::meta_number<std::uint32_t>(reply.rest, 'f');
    unique_ = memcached::meta_number<std::uint64_t>(reply.rest, 'c');
    switch (reply.kind) {
      case ReplyKind::value:
        return step_ == Step::read;
      case ReplyKind::meta_done:
        return step_ == Step::look;
      case ReplyKind::end:
        return step_ != Step::write;
      case ReplyKind::stored:
      case ReplyKind::not_stored:
      case ReplyKind::exists:
      case ReplyKind::not_found:
        return step_ == Step::write;
      default:
        return memcached::is_error(reply.kind);
    }
  }
  void on_value(std::string_view octets, std::uint32_t) override {
    if (value_.size() + octets.size() <= 2 * PurgeList::kMostOctets) value_.append(octets);
  }
  void on_failed(CallFailure) override { again_ = false; }
  void on_answered() override {
    if (!home_.store_.open() || memcached::is_error(kind_)) return;
    switch (step_) {
      case Step::look:
        looked();
        break;
      case Step::read:
        read();
        break;
      case Step::write:
        // Where another proxy was faster, its list is to be read first.
        if (kind_ == ReplyKind::stored)
          in_step();
        else
          home_.due_ = 0;
        break;
    }
    if (again_ && !under_way()) look();
  }

  void looked() {
    if (kind_ == ReplyKind::end) return home_.empty_ ? in_step() : write(false);
    if (sum_ == home_.sum_) return in_step();
    step_ = Step::read;
    ask("mg " + home_.key_ + " v c\r\n", {}, upstream::AnswerShape::meta);
  }

  void read() {
    if (kind_ == ReplyKind::end) return write(false);
    if (const auto theirs = PurgeList::unpack(value_)) home_.merge(*theirs);
    if (value_ == home_.packed_) return in_step();
    write(true);
  }

  void write(bool instead) {
    step_ = Step::write;
    std::string line = instead ? "cas " : "add ";
    line.append(home_.key_).append(" ").append(std::to_string(home_.sum_)).append(" 0 ");
    line.append(std::to_string(home_.packed_.size()));
    if (instead) line.append(" ").append(std::to_string(unique_));
    line.append("\r\n");
    ask(line, home_.packed_ + "\r\n", upstream::AnswerShape::line);
  }

  void in_step() { home_.heard_ms_ = wall_ms(); }

  SharedPurges& home_;
  MemcachedServer& server_;
  Step step_ = Step::look;
  bool again_ = false;
  ReplyKind kind_ = ReplyKind::error;
  std::uint32_t sum_ = 0;
  std::uint64_t unique_ = 0;
  std::string value_;
};

SharedPurges::SharedPurges(SharedStore& store) : store_(store), heard_ms_(wall_ms()) {}

SharedPurges::~SharedPurges() {
  if (applying_.joinable()) applying_.join();
}

cache::PurgeLog& SharedPurges::log() const { return *store_.cache().purges; }

void SharedPurges::configure() {
  key_ = store_.config().pool_namespace + ":purges";
  std::vector<std::unique_ptr<Talk>> talks;
  for (MemcachedServer* server : store_.pool().memcached) {
    const auto known = std::ranges::find_if(
        talks_, [&](const auto& talk) { return talk && &talk->server() == server; });
    talks.push_back(known != talks_.end() ? std::move(*known)
                                          : std::make_unique<Talk>(*this, *server));
  }
  talks_ = std::move(talks);
  pack();
  due_ = 0;
}

void SharedPurges::pack() {
  changes_ = log().changes();
  const auto list = log().list();
  packed_ = list->pack();
  // Not of the whole: with its own sum at the end, every list has the same.
  sum_ = crc32c(std::string_view(packed_).substr(0, packed_.size() - sizeof(sum_)));
  empty_ = list->empty();
}

void SharedPurges::on_tick() {
  apply_waiting();
  store_.remove_purged();
  const io::Milliseconds now = store_.context().loop.now();
  const bool changed = log().changes() != changes_;
  const bool done =
      due_ != 0 && std::ranges::none_of(talks_, [](const auto& talk) { return talk->under_way(); });
  telling_ = changed || (telling_ && !done);
  if (!changed && now < due_) return;
  if (changed) pack();
  due_ = now + kEvery;
  for (const auto& talk : talks_) talk->look();
}

bool SharedPurges::told() const {
  return !telling_ && log().changes() == changes_ && !log().has_keys();
}

// What others have purged is purged here. Who has not heard of them for so long that they may have
// forgotten a purge meanwhile takes all for purged.
void SharedPurges::merge(const PurgeList& theirs) {
  const std::vector<PurgeList::Rule> fresh = log().merge(theirs);
  pack();
  for (const PurgeList::Rule& one : fresh) waiting_.push_back(one.rule);
  if (theirs.forgotten_ms() > heard_ms_ - PurgeList::kSkew) waiting_.assign(1, {});
  apply_waiting();
}

void SharedPurges::apply_waiting() {
  if (waiting_.empty() || busy_.load(std::memory_order_acquire)) return;
  if (applying_.joinable()) applying_.join();
  busy_.store(true, std::memory_order_relaxed);
  applying_ =
      std::thread([this, store = store_.cache().store, rules = std::exchange(waiting_, {})] {
        for (const PurgeRule& rule : rules) store->purge(rule);
        busy_.store(false, std::memory_order_release);
      });
}

}  // namespace clockwise::proxy
