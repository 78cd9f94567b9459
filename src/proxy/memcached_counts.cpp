#include "proxy/memcached_counts.h"

namespace clockwise::proxy {

using memcached::ReplyKind;
using memcached::Verb;
using metrics::MemcachedResult;

MemcachedResult result_of(Verb verb, ReplyKind kind) noexcept {
  switch (kind) {
    case ReplyKind::end:
    case ReplyKind::not_found:
    case ReplyKind::meta_not_found:
      return MemcachedResult::miss;
    case ReplyKind::not_stored:
    case ReplyKind::exists:
    case ReplyKind::meta_not_stored:
    case ReplyKind::meta_exists:
      return MemcachedResult::not_stored;
    case ReplyKind::stored:
      return MemcachedResult::stored;
    case ReplyKind::error:
    case ReplyKind::client_error:
    case ReplyKind::server_error:
      return MemcachedResult::error;
    default:
      return verb == Verb::meta_set ? MemcachedResult::stored : MemcachedResult::hit;
  }
}

std::optional<metrics::MemcachedVerb> counted_as(Verb verb) noexcept {
  using metrics::MemcachedVerb;
  switch (verb) {
    case Verb::set:
    case Verb::cas:
    case Verb::meta_set:
      return MemcachedVerb::set;
    case Verb::add:
      return MemcachedVerb::add;
    case Verb::replace:
      return MemcachedVerb::replace;
    case Verb::append:
    case Verb::prepend:
      return MemcachedVerb::append;
    case Verb::incr:
    case Verb::decr:
    case Verb::meta_arithmetic:
      return MemcachedVerb::incr;
    case Verb::remove:
    case Verb::meta_delete:
      return MemcachedVerb::remove;
    case Verb::touch:
      return MemcachedVerb::touch;
    case Verb::get:
    case Verb::gets:
    case Verb::gat:
    case Verb::gats:
    case Verb::meta_get:
      return MemcachedVerb::get;
    default:
      return std::nullopt;
  }
}

}  // namespace clockwise::proxy
