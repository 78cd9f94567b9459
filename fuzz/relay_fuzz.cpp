// A whole connection through the relay: requests one behind the other, with their bodies, cut
// anywhere, come out anew; the same for the answer of a server. What comes out is read again by the
// small reader of fuzz/reference.h. It must be the same messages, each with one framing that cannot
// be read differently, and never a message that the input did not hold whole.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/rewrite.h"
#include "proxy/body.h"
#include "proxy/decide.h"
#include "reference.h"
#include "splits.h"

namespace {

using namespace clockwise::http;
using clockwise::fuzz::require;
using clockwise::proxy::BodyReader;
using clockwise::proxy::BodyWriter;
namespace reference = clockwise::fuzz::reference;
using reference::State;

constexpr HeadLimits kLimits{.size = 1U << 20, .fields = 100'000};

struct Relayed {
  std::string method;
  std::string uri;
  int status = 0;
  std::string data;
  bool whole = false;

  bool operator==(const Relayed&) const = default;
};

// The same messages, but a cut one may have been passed on to a different octet: how much comes
// before the fault is a matter of how it was received.
bool same_but_for_the_cut(const Relayed& a, const Relayed& b) {
  if (a.whole || b.whole) return a == b;
  const bool prefix = a.data.starts_with(b.data) || b.data.starts_with(a.data);
  return prefix && a.method == b.method && a.uri == b.uri && a.status == b.status;
}

bool same_but_for_the_cut(const std::vector<Relayed>& a, const std::vector<Relayed>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Relayed& x, const Relayed& y) { return same_but_for_the_cut(x, y); });
}

// Receives in pieces, as a connection does: a buffer in front of which the next message stands.
class Connection {
 public:
  Connection(std::string_view input, clockwise::fuzz::Cuts cuts) : rest_(input), cuts_(cuts) {}

  // One more piece; false at the end of the stream.
  bool receive() {
    const std::string_view piece = rest_.substr(0, cuts_.next());
    buffer_ += piece;
    rest_.remove_prefix(piece.size());
    return !piece.empty();
  }

  // Moves the body of a message to `out` in the framing of the other side.
  void relay_body(Body body, BodyKind framing, Relayed& message, std::string& out) {
    BodyReader reader;
    BodyWriter writer;
    reader.reset(body);
    writer.reset(framing);
    if (reader.done()) out += writer.after(0, true);  // nothing to wait for
    bool more = true;
    while (reader.state() == BodyReader::State::more && more) {
      const auto part = reader.read(buffer_.data(), buffer_.size());
      require(part.consumed <= buffer_.size() && part.data.size() <= part.consumed);
      if (part.state == BodyReader::State::bad) return;
      const bool last = part.state == BodyReader::State::done;
      out.append(writer.before(part.data.size())).append(part.data);
      out += writer.after(part.data.size(), last);
      message.data += part.data;
      buffer_.erase(0, part.consumed);
      if (!last) more = receive();
    }
    if (!more && reader.end_of_stream()) out += writer.after(0, true);
    message.whole = reader.done();
  }

  std::string buffer_;

 private:
  std::string_view rest_;
  clockwise::fuzz::Cuts cuts_;
};

// Everything that goes on to the server; the last message may be cut.
std::vector<Relayed> relay_requests(Connection connection, std::string& out) {
  std::vector<Relayed> messages;
  RequestHead head;
  Gather gather;
  std::size_t scanned = 0;
  while (true) {
    if (scanned == 0) connection.buffer_.erase(0, leading_blank_lines(connection.buffer_));
    const Progress progress = scan_request(connection.buffer_, kLimits, head, scanned);
    if (progress == Progress::refused) return messages;
    if (progress == Progress::incomplete) {
      if (!connection.receive()) return messages;
      continue;
    }
    if (head.max_forwards == 0) return messages;  // ours to answer
    gather.clear();
    rewrite_request(std::string_view(connection.buffer_).substr(0, head.size), head,
                    {.client_ip = "192.0.2.1", .request_id = "id", .fallback_host = "fallback"},
                    gather);
    for (const std::string_view slice : gather.slices()) out += slice;
    Relayed message{std::string(head.method), std::string(head.uri), 0, {}, false};
    const bool keep_alive = head.keep_alive;
    const Body body = head.body;
    connection.buffer_.erase(0, head.size);
    connection.relay_body(body, body.kind, message, out);
    if (body.kind == BodyKind::none || (body.kind == BodyKind::length && body.length == 0)) {
      message.whole = true;
    }
    messages.push_back(message);
    if (!message.whole || !keep_alive) return messages;
  }
}

// What a server that reads by the book finds.
std::vector<Relayed> read_requests(std::string_view text) {
  std::vector<Relayed> messages;
  while (!text.empty()) {
    const reference::Message head = reference::read_request(text);
    require(head.state == State::complete && head.minor == 1);
    require(head.all("host").size() == 1 && head.all("x-forwarded-for").size() == 1);
    require(head.all("x-forwarded-for")[0] == "192.0.2.1");
    require(head.all("connection").empty() && head.all("upgrade").empty());
    require(head.uri == head.target);
    text.remove_prefix(head.size);
    Relayed message{head.method, head.uri, 0, {}, true};
    if (head.body.kind == BodyKind::length) {
      message.data = text.substr(0, head.body.length);
      message.whole = message.data.size() == head.body.length;
      text.remove_prefix(message.data.size());
    } else if (head.body.kind == BodyKind::chunked) {
      const reference::Chunks chunks = reference::read_chunks(text);
      require(chunks.state != State::refused);
      message.data = chunks.data;
      message.whole = chunks.state == State::complete;
      text.remove_prefix(message.whole ? chunks.size : text.size());
    }
    messages.push_back(message);
  }
  return messages;
}

Relayed relay_response(Connection connection, Method method, unsigned client_minor,
                       std::string& out, Body& framing) {
  ResponseHead head;
  std::size_t scanned = 0;
  Relayed message;
  framing = {};
  while (true) {
    const Progress progress = scan_response(connection.buffer_, kLimits, method, head, scanned);
    if (progress == Progress::refused) return message;
    if (progress == Progress::complete) {
      if (head.status >= 200) break;
      connection.buffer_.erase(0, head.size);
    } else if (!connection.receive()) {
      return message;
    }
  }
  message.status = head.status;
  const BodyKind kind =
      clockwise::proxy::client_framing(head.body.kind, static_cast<std::uint8_t>(client_minor));
  framing = {kind, head.body.length};
  Gather gather;
  ResponseContext context;
  context.client_minor_version = static_cast<std::uint8_t>(client_minor);
  context.keep_alive = kind != BodyKind::until_close;
  context.body = framing;
  context.head_or_no_body = method == Method::head || head.status == 204 || head.status == 304;
  rewrite_response(std::string_view(connection.buffer_).substr(0, head.size), head, context,
                   gather);
  for (const std::string_view slice : gather.slices()) out += slice;
  const Body body = head.body;
  connection.buffer_.erase(0, head.size);
  connection.relay_body(body, kind, message, out);
  if (body.kind == BodyKind::none || (body.kind == BodyKind::length && body.length == 0)) {
    message.whole = true;
  }
  return message;
}

void check_response(std::string_view text, bool to_head, const Relayed& message, Body framing) {
  if (message.status == 0) return require(text.empty());
  const reference::Message head = reference::read_response(text, to_head);
  require(head.state == State::complete && head.status == message.status && head.minor == 1);
  require(head.all("upgrade").empty() && head.all("keep-alive").empty());
  text.remove_prefix(head.size);
  switch (framing.kind) {
    case BodyKind::none:
      require(text.empty());
      require(head.body.kind == BodyKind::none || head.body.length == 0);
      break;
    case BodyKind::length:
      require(head.body.kind == BodyKind::length && head.body.length == framing.length);
      require(text == message.data && (text.size() == framing.length) == message.whole);
      break;
    case BodyKind::chunked: {
      require(head.body.kind == BodyKind::chunked);
      const reference::Chunks chunks = reference::read_chunks(text);
      require(chunks.data == message.data);
      require(chunks.state == (message.whole ? State::complete : State::incomplete));
      require(!message.whole || chunks.size == text.size());
      break;
    }
    case BodyKind::until_close:  // a cut one is reset, which no octet shows
      require(head.body.kind == BodyKind::until_close && text == message.data);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t seed = octets[0];
  const std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  const clockwise::fuzz::Cuts small(seed);
  const clockwise::fuzz::Cuts other(static_cast<std::uint8_t>(seed + 1));

  std::string sent;
  std::string sent_again;
  const auto requests = relay_requests({input, small}, sent);
  require(read_requests(sent) == requests);
  require(same_but_for_the_cut(relay_requests({input, other}, sent_again), requests));

  const Method method = (seed & 1) != 0 ? Method::head : Method::get;
  const unsigned minor = (seed >> 1) & 1;
  Body framing;
  std::string answered;
  std::string answered_again;
  const Relayed answer = relay_response({input, small}, method, minor, answered, framing);
  check_response(answered, method == Method::head, answer, framing);
  require(same_but_for_the_cut(
      relay_response({input, other}, method, minor, answered_again, framing), answer));
  return 0;
}
