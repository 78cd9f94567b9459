// What is the message and where does it end? Three readers must agree: ours, the small one of
// fuzz/reference.h, and Boost.Beast's parser, which the world has tried for years. Where Beast
// differs the difference stands in a table below, with its reason; any other is a fault.
#include <boost/beast/http.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "http/chunked.h"
#include "http/head.h"
#include "reference.h"
#include "splits.h"

namespace {

namespace beast = boost::beast;
using namespace clockwise::http;
using clockwise::fuzz::require;
namespace reference = clockwise::fuzz::reference;
using reference::State;

// So wide that only what the octets say decides.
constexpr HeadLimits kLimits{.size = 1U << 20, .fields = 100'000};

struct Difference {
  std::string_view ours;  // why we refuse
  std::string_view reason;
};

// What Beast 1.81 takes and we refuse.
constexpr Difference kRefusedByUs[] = {
    {"no Host field", "a matter of the caller, says Beast"},
    {"two Host fields", "the same"},
    {"invalid Host field", "the same"},
    {"invalid authority in the target", "the same: Beast does not look into a target"},
    {"target * is for OPTIONS", "the same"},
    {"request target is neither a path nor an http URI", "the same"},
    {"fragment in the request target", "the same"},
    {"method not allowed", "we serve neither CONNECT nor TRACE"},
    {"unknown expectation", "417 is ours to say"},
    {"invalid Max-Forwards", "a field like any other to Beast"},
    {"two Max-Forwards fields", "the same"},
    {"transfer coding not supported", "taken as no body, or framed by Content-Length; Beast 361"},
    {"malformed Transfer-Encoding", "the same"},
    {"Transfer-Encoding in HTTP/1.0", "decoded as chunked; Beast 361"},
    {"Content-Length beside Transfer-Encoding", "framed by Content-Length beside gzip; Beast 361"},
    {"two Transfer-Encoding fields", "the last one counts"},
    {"two Content-Length fields", "equal values are one; both lines are kept"},
    {"invalid Content-Length", "a list of equal values is one, and 2^63 is a length"},
    {"folded line or blank before a field name", "obs-fold is replaced by a blank"},
    {"control octet or bare line end in a field value", "the line before an obs-fold"},
};

// Errors of Beast in what we take: HTTP/1.2 and up, which are served as 1.1 (RFC 9110 2.5); a
// status line that ends behind the status (RFC 9112 4 lets a recipient take it); and Content-Length
// beside chunked in a response, where chunked wins (RFC 9112 6.3).
bool beast_may_refuse(const boost::system::error_code& error, std::string_view line, bool both) {
  namespace http = beast::http;
  if (error == http::error::bad_version || error == http::error::bad_value) return true;
  if (error == http::error::bad_transfer_encoding || error == http::error::bad_content_length) {
    return both;
  }
  return line.starts_with("HTTP/1.") && line.size() == 12;
}

void same_fields(std::string_view input, const std::vector<FieldLine>& ours,
                 const reference::Message& other) {
  require(ours.size() == other.fields.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    require(name_of(input, ours[i]) == other.fields[i].first);
    require(value_of(input, ours[i]) == other.fields[i].second);
  }
}

State state_of(Progress progress) {
  switch (progress) {
    case Progress::complete:
      return State::complete;
    case Progress::refused:
      return State::refused;
    case Progress::incomplete:
      break;
  }
  return State::incomplete;
}

void check_known_refusal(const Refusal& refusal) {
  for (const Difference& difference : kRefusedByUs) {
    if (refusal.text == difference.ours) return;
  }
  std::fprintf(stderr, "Beast takes what we refuse: %s\n", refusal.text.data());
  require(false);
}

// The body behind a head, by our decoder and the reference; gives back where it ends.
void check_chunks(std::string_view body, clockwise::fuzz::Cuts cuts, std::string& data,
                  ChunkedDecoder& decoder, ChunkedDecoder::State& state, std::size_t& size) {
  const reference::Chunks other = reference::read_chunks(body);
  state = ChunkedDecoder::State::more;
  size = 0;
  while (state == ChunkedDecoder::State::more && size < body.size()) {
    const auto step = decoder.step(body.substr(size, cuts.next()));
    size += step.consumed;
    data += step.data;
    state = step.state;
  }
  switch (other.state) {
    case State::complete:
      require(state == ChunkedDecoder::State::done && size == other.size && data == other.data);
      break;
    case State::refused:
      require(state == ChunkedDecoder::State::bad);
      break;
    case State::incomplete:
      // The decoder need not wait for the end of a line to know that it is bad.
      require(state != ChunkedDecoder::State::done);
      require(state == ChunkedDecoder::State::bad || data == other.data);
      break;
  }
}

template <bool kRequest>
struct Beast {
  beast::http::parser<kRequest, beast::http::string_body> parser;
  boost::system::error_code error;
  std::size_t consumed = 0;

  explicit Beast(bool skip) {
    parser.header_limit(UINT32_MAX);
    parser.body_limit(boost::none);
    parser.skip(skip);
  }

  // Feeds whatever is there; what is missing is told apart from what is wrong.
  void feed(std::string_view input, bool eager) {
    parser.eager(eager);
    while (!error && consumed < input.size() &&
           !(eager ? parser.is_done() : parser.is_header_done())) {
      const std::size_t n =
          parser.put(boost::asio::buffer(input.data() + consumed, input.size() - consumed), error);
      consumed += n;
      if (n == 0) break;
    }
    if (error == beast::http::error::need_more) error = {};
  }
};

void compare_bodies(std::string_view input, const auto& ours, auto& theirs,
                    clockwise::fuzz::Cuts cuts) {
  const auto& message = theirs.parser.get();
  const bool chunked = ours.body.kind == BodyKind::chunked;
  require(theirs.parser.chunked() == chunked);
  require(theirs.consumed == ours.size);
  if (ours.body.kind == BodyKind::length) {
    require(theirs.parser.content_length().value_or(0) == ours.body.length);
  }
  if (!chunked) return;
  std::string data;
  ChunkedDecoder decoder;
  ChunkedDecoder::State state{};
  std::size_t size = 0;
  check_chunks(input.substr(ours.size), cuts, data, decoder, state, size);
  theirs.feed(input, true);
  if (theirs.parser.is_done() && state == ChunkedDecoder::State::done) {
    require(message.body() == data && theirs.consumed == ours.size + size);
  } else if (theirs.parser.is_done()) {
    // Beast keeps quoted extensions unread, folds trailers, counts neither (Beast 356 to 361), and
    // takes any number of leading zeros.
    const std::string_view why = decoder.error();
    require(why == "malformed chunk extension" || why == "chunk extensions too long" ||
            why == "malformed trailer field" || why == "too many trailer fields" ||
            why == "malformed chunk size" || why == "chunk size too large");
  } else if (state == ChunkedDecoder::State::done) {
    // Beast reads trailers as fields; framing or a bad Connection among them is too late.
    namespace http = beast::http;
    require(theirs.error == http::error::bad_content_length ||
            theirs.error == http::error::multiple_content_length ||
            theirs.error == http::error::bad_transfer_encoding ||
            theirs.error == http::error::bad_value);
  }
}

void check_request(std::string_view input, clockwise::fuzz::Cuts cuts) {
  input.remove_prefix(leading_blank_lines(input));
  RequestHead ours;
  std::size_t scanned = 0;
  const Progress progress = scan_request(input, kLimits, ours, scanned);
  const reference::Message other = reference::read_request(input);
  require(state_of(progress) == other.state);

  Beast<true> theirs(false);
  theirs.feed(input, false);
  if (progress == Progress::refused) {
    if (theirs.parser.is_header_done()) check_known_refusal(ours.refusal);
    return;
  }
  if (progress == Progress::incomplete) return require(!theirs.parser.is_header_done());

  require(ours.size == other.size && ours.minor_version == other.minor);
  require(ours.method == other.method && ours.target == other.target && ours.uri == other.uri);
  require(ours.keep_alive == other.keep_alive);
  require(ours.body.kind == other.body.kind && ours.body.length == other.body.length);
  same_fields(input, ours.fields, other);
  if (!theirs.parser.is_header_done()) {
    return require(beast_may_refuse(theirs.error, input.substr(0, ours.line_end - 2), false));
  }
  require(theirs.parser.get().method_string() == ours.method);
  require(theirs.parser.get().target() == ours.target);
  compare_bodies(input, ours, theirs, cuts);
}

void check_response(std::string_view input, bool to_head, clockwise::fuzz::Cuts cuts) {
  ResponseHead ours;
  std::size_t scanned = 0;
  const Method method = to_head ? Method::head : Method::get;
  const Progress progress =
      input.empty() ? Progress::incomplete : scan_response(input, kLimits, method, ours, scanned);
  const reference::Message other = reference::read_response(input, to_head);
  require(state_of(progress) == other.state);

  Beast<false> theirs(to_head);
  theirs.feed(input, false);
  if (progress == Progress::refused) {
    if (!theirs.parser.is_header_done()) return;
    // Any three digits are a status to Beast; those above 599 are none to us (RFC 9110 15).
    const unsigned status = theirs.parser.get().result_int();
    if (ours.refusal.text == "malformed status line" && (status < 100 || status > 599)) return;
    return check_known_refusal(ours.refusal);
  }
  if (progress == Progress::incomplete) return require(!theirs.parser.is_header_done());

  require(ours.size == other.size && ours.minor_version == other.minor);
  require(ours.status == other.status && ours.keep_alive == other.keep_alive);
  require(ours.body.kind == other.body.kind && ours.body.length == other.body.length);
  same_fields(input, ours.fields, other);
  if (!theirs.parser.is_header_done()) {
    return require(
        beast_may_refuse(theirs.error, input.substr(0, ours.line_end - 2), !ours.reusable));
  }
  require(theirs.parser.get().result_int() == ours.status);
  // Beast announces a length or chunks also where there is no body.
  if (ours.body.kind == BodyKind::none) return;
  compare_bodies(input, ours, theirs, cuts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t seed = octets[0];
  const std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  const clockwise::fuzz::Cuts cuts(seed);
  check_request(input, cuts);
  check_response(input, (seed & 1) != 0, cuts);
  return 0;
}
