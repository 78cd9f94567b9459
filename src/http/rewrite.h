// A message head as it leaves the proxy: relayed lines as received, framing and our own fields
// anew.
//
// The result is a list of slices for one gather write: long runs of received lines, and text
// written into a scratch area for what is ours. Hop-by-hop lines, framing lines and what a
// Connection field names are never relayed (RFC 9110 7.6.1); Via, X-Forwarded-* (or Forwarded) and
// X-Request-Id are added after that, so that no client can name them away.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "http/head.h"

namespace clockwise::http {

// Slices for one gather write. No allocation unless a head is unusually cut up or its added text
// unusually long; then everything moves into one string. Reused: clear() keeps the memory.
// Slices point into the received head and into this object: both must stay in place until sent.
class Gather {
 public:
  Gather() = default;
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  void clear() noexcept;
  void relay(std::string_view received);  // kept by reference; joined with the slice before it
                                          // when they touch
  template <class... Text>
  void write(const Text&... text);  // copied into the scratch area, one after the other; numbers
                                    // in decimal
  [[nodiscard]] std::span<const std::string_view> slices() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;  // octets in all

  static constexpr std::size_t kSlices = 16;
  static constexpr std::size_t kScratch = 1024;

 private:
  void add(std::string_view slice);
  void spill(std::string_view next);
  void spill(std::integral auto number) { spill(std::to_string(number)); }

  std::size_t count_ = 0;
  std::size_t used_ = 0;
  std::array<std::string_view, kSlices> slices_;
  std::array<char, kScratch> scratch_;
  std::string spilled_;  // everything, once it holds anything
};

inline void Gather::clear() noexcept {
  count_ = used_ = 0;
  if (!spilled_.empty()) spilled_.clear();
}

inline void Gather::add(std::string_view slice) {
  if (count_ > 0) {
    std::string_view& last = slices_.data()[count_ - 1];
    if (last.data() + last.size() == slice.data()) {
      last = {last.data(), last.size() + slice.size()};
      return;
    }
  }
  if (count_ == kSlices || !spilled_.empty()) return spill(slice);
  slices_.data()[count_++] = slice;
}

inline void Gather::relay(std::string_view received) {
  if (!received.empty()) add(received);
}

namespace detail {

// How much room it takes at most. The length of a literal is known without looking for its end.
template <std::size_t N>
constexpr std::size_t room_for(const char (&)[N]) noexcept {
  return N - 1;
}
constexpr std::size_t room_for(std::string_view text) noexcept { return text.size(); }
constexpr std::size_t room_for(std::integral auto) noexcept { return 20; }

// Where it ends.
template <std::size_t N>
char* put(char* place, const char (&text)[N]) noexcept {
  std::memcpy(place, text, N - 1);
  return place + N - 1;
}
inline char* put(char* place, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  return place + text.size();
}
char* put(char* place, std::integral auto number) noexcept {
  return std::to_chars(place, place + room_for(number), number).ptr;
}

}  // namespace detail

// Inlined, so that literals become a few stores.
template <class... Text>
[[gnu::always_inline]] inline void Gather::write(const Text&... text) {
  if ((detail::room_for(text) + ... + 0) > kScratch - used_) [[unlikely]]
    return (spill(text), ...);
  char* const place = scratch_.data() + used_;
  char* end = place;
  ((end = detail::put(end, text)), ...);
  const auto size = static_cast<std::size_t>(end - place);
  if (size == 0) return;
  used_ += size;
  add({place, size});
}

inline std::span<const std::string_view> Gather::slices() const noexcept {
  return {slices_.data(), count_};
}

enum class ForwardedStyle : std::uint8_t { x_forwarded_for, forwarded, off };

struct RequestContext {
  std::string_view client_ip = {};  // text, v6 without brackets; empty: a unix socket, `unknown`
  std::string_view scheme = "http";
  bool trusted = false;  // the client's own X-Forwarded-* and Forwarded are kept, and
                         // the one of `style` extended; otherwise they are dropped
  ForwardedStyle style = ForwardedStyle::x_forwarded_for;
  std::string_view request_id = {};     // used when the client sent no usable one
  std::string_view fallback_host = {};  // Host for an HTTP/1.0 request without one
  bool close = false;                   // ask the server to close after this exchange
};

// `received` is the head as scanned. Body framing towards the server: the same kind as received
// (Content-Length, or chunked by our own framing); a method that expects content but has none gets
// Content-Length: 0 (RFC 9110 8.6) when it had one.
// Expect: 100-continue is relayed (the server decides). Max-Forwards of OPTIONS is decremented.
// REQUIRES: head.max_forwards != 0 (that one is the proxy's to answer).
void rewrite_request(std::string_view received, const RequestHead& head,
                     const RequestContext& context, Gather& out);

// The client's X-Request-Id, which rewrite_request passes on; empty when it sent none that can be
// used: one of at most 128 printable octets.
[[nodiscard]] std::string_view request_id_of(std::string_view received, const RequestHead& head);

struct ResponseContext {
  std::uint8_t client_minor_version = 1;
  bool keep_alive = true;  // towards the client: writes Connection: close when false, and
                           // Connection: keep-alive for an HTTP/1.0 client when true
  Body body = {};  // as it goes to the client (an HTTP/1.0 client gets until_close for chunked)
  bool head_or_no_body = false;  // answer to HEAD, 204 or 304: received Content-Length is relayed
                                 // (not for 204), no body framing is written
  std::string_view extra = {};   // whole lines with CRLF to add (debug headers), may be empty
  std::string_view date = {};  // IMF-fixdate for an answer that came without Date (RFC 9110 6.6.1);
                               // empty: none is added
};

// The name this proxy has in Via.
inline constexpr std::string_view kPseudonym = "clockwise";

// How often a request came through a proxy of our name already: more than a few times is a loop.
[[nodiscard]] std::size_t times_passed(std::string_view received, const RequestHead& head);

// Status line: our HTTP/1.1, the status and reason as received. Adds Via.
void rewrite_response(std::string_view received, const ResponseHead& head,
                      const ResponseContext& context, Gather& out);

// A 1xx that is passed on: status line and relayed fields, nothing added but Via.
void rewrite_interim(std::string_view received, const ResponseHead& head, Gather& out);

}  // namespace clockwise::http
