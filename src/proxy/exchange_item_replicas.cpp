// The exchange about an item that several servers hold: a read goes from owner to owner until one
// has it, and a write is a ReplicaWrite.
#include "proxy/exchange.h"
#include "proxy/memcached_target.h"
#include "proxy/session.h"

namespace clockwise::proxy {

using memcached::ReplyKind;
using memcached::Verb;

// False: no owner can be asked, and it is as if the item had one.
bool Exchange::choose_owner() {
  const auto place = first_owner(*view_, item_->key, hash_, context_);
  item_->place = place.value_or(kNoOwner);
  if (place) item_->server = &owner_at(*view_, hash_, *place);
  return place.has_value();
}

// An owner has answered a read, or has `failed` to. False: the next one is not asked, and what it
// came to stands in the item.
bool Exchange::read_elsewhere(bool failed) {
  Item& item = *item_;
  if (item.verb != Verb::get && item.verb != Verb::gets) return false;
  if (item.found && !failed) copy_item_back();
  if (item.begun || (item.found && !failed)) return false;
  if (!failed) item.lacking |= 1U << item.place;
  item.found = false;
  item.value.clear();
  const upstream::Owners owners = owners_of(*view_, hash_);
  while (++item.place < owners.size()) {
    if (!can_be_asked(*view_, owners[item.place])) continue;
    item.server = view_->memcached[owners[item.place]];
    send_read();
    return true;
  }
  if (!failed || item.lacking == 0) return false;
  // Somebody has said that there is none.
  item.kind = ReplyKind::end;
  on_item_answered();
  return true;
}

void Exchange::copy_item_back() {
  if (item_->lacking == 0) return;
  const upstream::Owners owners = owners_of(*view_, hash_);
  for (std::uint32_t place = 0; place < owners.size(); ++place)
    if ((item_->lacking & (1U << place)) != 0 && can_be_asked(*view_, owners[place]))
      context_.backfills.start(*view_, *item_->server, *view_->memcached[owners[place]], item_->key,
                               session_->listener().config().limits.buffered);
}

// False: as above.
bool Exchange::write_owners() {
  Item& item = *item_;
  const bool removes = item.verb == Verb::remove || item.verb == Verb::meta_delete;
  std::string condition;
  memcached::Command command;
  command.verb = item.verb;
  command.key = item.key;
  command.flags = item.flags;
  command.exptime = item.exptime;
  command.length = item.length;
  if (!item.uniques.empty()) {
    command.number = item.uniques.back();
    condition = "C" + std::to_string(command.number);
  }
  if (item.verb == Verb::meta_delete) command.rest = condition;
  ReplicaWrite& write = context_.take_write();
  const std::string_view data = removes ? std::string_view() : item.value;
  if (!write.start(*view_, item.key, command, data, this)) return false;
  item.write = &write;
  await_item();
  return true;
}

// Nobody waits for it. False: the item has one owner, or as above.
bool Exchange::remove_from_owners() {
  if (!has_replicas(*view_)) return false;
  std::string coded;
  return context_.take_write().start(*view_, item_->key, memcached::deletion_of(item_->key, coded),
                                     {}, nullptr);
}

void Exchange::on_written(const ReplicaWrite::Result& result) {
  Item& item = *item_;
  item.write = nullptr;
  item.server = result.server;
  if (!result.answered) return on_item_failed(result.failure);
  item.kind = result.kind;
  item.note_refusal(result.text);
  on_item_answered();
}

}  // namespace clockwise::proxy
