#include "http/rewrite.h"

#include <algorithm>
#include <array>

#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr std::size_t kMaxRequestId = 128;

// The decimal text of a number.
class Digits {
 public:
  explicit Digits(std::uint64_t number) noexcept {
    do {
      *--begin_ = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
  }
  Digits(const Digits&) = delete;
  Digits& operator=(const Digits&) = delete;

  [[nodiscard]] std::string_view text() const noexcept {
    return {begin_, static_cast<std::size_t>(text_.data() + text_.size() - begin_)};
  }

 private:
  std::array<char, 20> text_;
  char* begin_ = text_.data() + text_.size();
};

void write_framing(const Body& body, Gather& out) {
  if (body.kind == BodyKind::chunked) {
    out.write("Transfer-Encoding: chunked\r\n");
  } else if (body.kind == BodyKind::length) {
    const Digits length(body.length);
    out.write("Content-Length: ", length.text(), "\r\n");
  }
}

std::string_view via(unsigned minor_version) {
  return minor_version == 0 ? "Via: 1.0 clockwise\r\n" : "Via: 1.1 clockwise\r\n";
}

std::string_view slice(std::string_view received, std::size_t begin, std::size_t end) {
  return {received.data() + begin, end - begin};
}

// Relays the field lines that `keeps` names, as runs of received octets. `run` is where the first
// run begins: the start line may be part of it.
template <class Keeps>
void relay_lines(std::string_view received, std::size_t run, std::size_t begin,
                 std::span<const FieldLine> fields, Keeps keeps, Gather& out) {
  std::size_t end = begin;
  for (const FieldLine& line : fields) {
    if (!keeps(line)) {
      out.relay(slice(received, run, end));
      run = line.end;
    }
    end = line.end;
  }
  out.relay(slice(received, run, end));
}

bool is_forwarding(Field id) { return id >= Field::x_forwarded_for && id <= Field::forwarded; }

bool is_request_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestId &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// One request on its way: what the lines say about the fields that are ours.
class RequestWriter {
 public:
  RequestWriter(std::string_view received, const RequestHead& head, const RequestContext& context,
                Gather& out)
      : received_(received), head_(head), context_(context), out_(out) {
    for (const FieldLine& line : head.fields) note(line);
    own_host_ = head.absolute_form || !has_host_;
    if (request_ids_ > 1) keeps_request_id_ = false;
  }

  void write() {
    const std::size_t run = write_start();
    relay_lines(
        received_, run, head_.line_end, head_.fields,
        [this](const FieldLine& line) { return keeps(line); }, out_);
    write_framing(head_.body, out_);
    write_forwarding();
    if (!keeps_request_id_ && !context_.request_id.empty()) {
      out_.write("X-Request-Id: ", context_.request_id, "\r\n");
    }
    if (head_.max_forwards > 0) {
      const Digits hops(static_cast<std::uint64_t>(head_.max_forwards) - 1);
      out_.write("Max-Forwards: ", hops.text(), "\r\n");
    }
    out_.write(context_.close ? "Connection: close\r\n\r\n" : "\r\n");
  }

 private:
  void note(const FieldLine& line) {
    if (line.id == Field::other) return;
    has_host_ |= line.id == Field::host;
    has_forwarded_proto_ |= line.id == Field::x_forwarded_proto;
    has_forwarded_host_ |= line.id == Field::x_forwarded_host;
    if (line.id != Field::x_request_id || line.hop_by_hop) return;
    ++request_ids_;
    keeps_request_id_ = is_request_id(value_of(received_, line));
  }

  [[nodiscard]] bool keeps(const FieldLine& line) const {
    if (line.hop_by_hop) return false;
    switch (line.id) {
      case Field::other:
        return true;
      case Field::content_length:
      case Field::transfer_encoding:
        return false;
      case Field::host:
        return !own_host_;
      case Field::x_request_id:
        return keeps_request_id_;
      case Field::max_forwards:
        return head_.max_forwards < 0;
      default:
        return !is_forwarding(line.id) || (context_.trusted && line.id != extended());
    }
  }

  // The field that is written anew with our hop added.
  [[nodiscard]] Field extended() const {
    switch (context_.style) {
      case ForwardedStyle::x_forwarded_for:
        return Field::x_forwarded_for;
      case ForwardedStyle::forwarded:
        return Field::forwarded;
      case ForwardedStyle::off:
        break;
    }
    return Field::other;
  }

  // Request line, and Host where it is ours; gives back where the run of relayed lines begins.
  std::size_t write_start() {
    if (head_.origin_line && !own_host_) return 0;
    if (head_.origin_line) {
      out_.relay(received_.substr(0, head_.line_end));
    } else {
      out_.relay(received_.substr(0, head_.method.size() + 1));
      write_uri();
      out_.write(" HTTP/1.1\r\n");
    }
    if (own_host_) {
      out_.write("Host: ", head_.authority.empty() ? context_.fallback_host : head_.authority,
                 "\r\n");
    }
    return head_.line_end;
  }

  void write_uri() {
    // A path that stands in the received octets is relayed, whatever its length.
    const bool received = head_.target.ends_with(head_.uri);
    if (received) {
      out_.relay(head_.target.substr(head_.target.size() - head_.uri.size()));
    } else {
      out_.write(head_.uri);
    }
  }

  // Via, and who the client is.
  void write_forwarding() {
    switch (context_.style) {
      case ForwardedStyle::x_forwarded_for:
        return write_x_forwarded();
      case ForwardedStyle::forwarded:
        return write_forwarded();
      case ForwardedStyle::off:
        out_.write(via(head_.minor_version));
    }
  }

  // RFC 7239 section 6.2 for who has no address.
  [[nodiscard]] std::string_view client() const {
    return context_.client_ip.empty() ? std::string_view("unknown") : context_.client_ip;
  }

  void write_x_forwarded() {
    out_.write(via(head_.minor_version), "X-Forwarded-For: ");
    write_received(Field::x_forwarded_for);
    out_.write(client(), "\r\n");
    if (!context_.trusted || !has_forwarded_proto_) {
      out_.write("X-Forwarded-Proto: ", context_.scheme, "\r\n");
    }
    if ((!context_.trusted || !has_forwarded_host_) && !head_.authority.empty()) {
      out_.write("X-Forwarded-Host: ", head_.authority, "\r\n");
    }
  }

  // RFC 7239.
  void write_forwarded() {
    out_.write(via(head_.minor_version), "Forwarded: ");
    write_received(Field::forwarded);
    const bool v6 = client().find(':') != std::string_view::npos;
    out_.write(v6 ? "for=\"[" : "for=", client(), v6 ? "]\";proto=" : ";proto=", context_.scheme);
    if (!head_.authority.empty()) {
      const std::string_view quote = is_token(head_.authority) ? "" : "\"";
      out_.write(";host=", quote, head_.authority, quote);
    }
    out_.write("\r\n");
  }

  // What trusted proxies before us wrote, as the beginning of the list.
  void write_received(Field id) {
    if (!context_.trusted) return;
    for (const FieldLine& line : head_.fields) {
      if (line.id != id || line.value_size == 0) continue;
      out_.write(value_of(received_, line), ", ");
    }
  }

  std::string_view received_;
  const RequestHead& head_;
  const RequestContext& context_;
  Gather& out_;
  bool has_host_ = false;
  bool own_host_ = false;
  bool has_forwarded_proto_ = false;
  bool has_forwarded_host_ = false;
  bool keeps_request_id_ = false;
  unsigned request_ids_ = 0;
};

// The status line in our version and with the blank that RFC 9112 4 wants even without a reason.
// Gives back where the run of relayed lines begins.
std::size_t write_status_line(std::string_view received, const ResponseHead& head, Gather& out) {
  constexpr std::string_view kVersion = "HTTP/1.1";
  constexpr std::size_t kStatusEnd = 12;
  std::size_t run = 0;
  if (!received.starts_with(kVersion)) {
    out.write(kVersion);
    run = kVersion.size();
  }
  if (head.reason_end > kStatusEnd) return run;
  out.relay(received.substr(run, kStatusEnd - run));
  out.write(" \r\n");
  return head.line_end;
}

bool has_date(const ResponseHead& head) {
  return std::any_of(head.fields.begin(), head.fields.end(),
                     [](const FieldLine& line) { return line.id == Field::date; });
}

void write_response_framing(const ResponseContext& context, Gather& out) {
  if (context.head_or_no_body) return;
  // A body that is known to be empty must say so, or the client would wait for the close.
  const Body body = context.body.kind == BodyKind::none ? Body{BodyKind::length, 0} : context.body;
  write_framing(body, out);
}

std::string_view connection_and_end(const ResponseContext& context) {
  if (!context.keep_alive) return "Connection: close\r\n\r\n";
  return context.client_minor_version == 0 ? "Connection: keep-alive\r\n\r\n" : "\r\n";
}

}  // namespace

void rewrite_request(std::string_view received, const RequestHead& head,
                     const RequestContext& context, Gather& out) {
  RequestWriter(received, head, context, out).write();
}

std::string_view request_id_of(std::string_view received, const RequestHead& head) {
  std::string_view id;
  unsigned ids = 0;
  for (const FieldLine& line : head.fields) {
    if (line.id != Field::x_request_id || line.hop_by_hop) continue;
    ++ids;
    id = value_of(received, line);
  }
  return ids == 1 && is_request_id(id) ? id : std::string_view{};
}

void rewrite_response(std::string_view received, const ResponseHead& head,
                      const ResponseContext& context, Gather& out) {
  // Beside chunked it describes nothing, and a 204 has no length (RFC 9110 8.6).
  const bool keeps_length = context.head_or_no_body && head.status != 204 && head.reusable;
  const std::size_t run = write_status_line(received, head, out);
  relay_lines(
      received, run, head.line_end, head.fields,
      [&](const FieldLine& line) {
        return !line.hop_by_hop && (line.id != Field::content_length || keeps_length);
      },
      out);
  write_response_framing(context, out);
  if (!context.date.empty() && !has_date(head)) out.write("Date: ", context.date, "\r\n");
  out.write(via(head.minor_version), context.extra, connection_and_end(context));
}

void rewrite_interim(std::string_view received, const ResponseHead& head, Gather& out) {
  const std::size_t run = write_status_line(received, head, out);
  relay_lines(
      received, run, head.line_end, head.fields,
      [](const FieldLine& line) { return !line.hop_by_hop && line.id != Field::content_length; },
      out);
  out.write(via(head.minor_version), "\r\n");
}

std::size_t times_passed(std::string_view received, const RequestHead& head) {
  std::size_t times = 0;
  for (const FieldLine& line : head.fields) {
    if (line.id != Field::via) continue;
    each_member(value_of(received, line), [&](std::string_view member) {
      const std::size_t name = std::min(member.find_first_of(" \t"), member.size());
      const std::string_view by = trim(member.substr(name));
      times += by.substr(0, by.find_first_of(" \t")) == kPseudonym ? 1 : 0;
      return true;
    });
  }
  return times;
}

}  // namespace clockwise::http
