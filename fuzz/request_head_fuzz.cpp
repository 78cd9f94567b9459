// A request head gives the same answer however it is cut; what is accepted and rewritten reads
// again as the same request, with nothing in it that another parser could take differently.
#include <string>

#include "../tests/unit/http/splits.h"
#include "http/rewrite.h"
#include "splits.h"

namespace {

using namespace clockwise::http;
using clockwise::fuzz::require;

constexpr HeadLimits kLimits{.size = 2048, .fields = 20};

Progress scan_whole(std::string_view input, const HeadLimits& limits, RequestHead& head) {
  std::size_t scanned = 0;
  return scan_request(input, limits, head, scanned);
}

Progress scan_cut(std::string_view input, clockwise::fuzz::Cuts cuts, RequestHead& head) {
  std::size_t scanned = 0;
  for (std::size_t end = cuts.next(); end < input.size(); end += cuts.next()) {
    const Progress progress = scan_request(input.substr(0, end), kLimits, head, scanned);
    if (progress != Progress::incomplete) return progress;
  }
  return scan_request(input, kLimits, head, scanned);
}

bool has_bare_line_end(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return true;
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) return true;
  }
  return text.find('\0') != std::string_view::npos;
}

std::size_t count(const RequestHead& head, Field id) {
  std::size_t n = 0;
  for (const FieldLine& line : head.fields) n += line.id == id ? 1 : 0;
  return n;
}

std::string values_of(std::string_view text, const RequestHead& head, Field id) {
  std::string values;
  for (const FieldLine& line : head.fields) {
    if (line.id != id) continue;
    values.append(values.empty() ? "" : " + ").append(value_of(text, line));
  }
  return values;
}

// Who the client is stands at the end of one field, and a stranger's word is not passed on.
void check_forwarding(std::string_view sent, const RequestHead& head,
                      const RequestContext& context) {
  const std::string client(context.client_ip);
  const std::string chain = values_of(sent, head, Field::x_forwarded_for);
  const std::string forwarded = values_of(sent, head, Field::forwarded);
  if (context.style == ForwardedStyle::x_forwarded_for) {
    require(count(head, Field::x_forwarded_for) == 1 && chain.ends_with(client));
    require(context.trusted || chain == client);
    require(context.trusted || values_of(sent, head, Field::x_forwarded_proto) == "http");
  } else if (!context.trusted) {
    require(chain.empty() && count(head, Field::x_forwarded_other) == 0);
  }
  if (context.style == ForwardedStyle::forwarded) {
    require(count(head, Field::forwarded) == 1);
    require(forwarded.find("for=\"[2001:db8::1]\";proto=http") != std::string::npos ||
            forwarded.find("for=192.0.2.1;proto=http") != std::string::npos);
  } else if (!context.trusted) {
    require(forwarded.empty());
  }
  require(count(head, Field::via) >= 1);
}

void check_round_trip(std::string_view input, const RequestHead& head, std::uint8_t seed) {
  RequestContext context;
  context.client_ip = (seed & 1) != 0 ? "2001:db8::1" : "192.0.2.1";
  context.trusted = (seed & 2) != 0;
  context.style = static_cast<ForwardedStyle>((seed >> 2) % 3);
  context.request_id = "made-here";
  context.fallback_host = "fallback:80";
  context.close = (seed & 16) != 0;
  Gather gather;
  rewrite_request(input, head, context, gather);
  std::string sent;
  for (const std::string_view slice : gather.slices()) sent.append(slice);

  RequestHead again;
  require(!has_bare_line_end(sent));
  require(scan_whole(sent, {.size = 1U << 20, .fields = 1000}, again) == Progress::complete);
  require(again.size == sent.size() && again.minor_version == 1 && again.origin_line);
  require(again.method == head.method && again.uri == head.uri && again.target == head.uri);
  require(again.authority == head.authority || head.authority.empty());
  require(again.body.kind == head.body.kind && again.body.length == head.body.length);
  require(again.keep_alive == !context.close);
  require(count(again, Field::host) == 1 && count(again, Field::x_request_id) == 1);
  require(count(again, Field::upgrade) + count(again, Field::te) + count(again, Field::trailer) +
              count(again, Field::keep_alive) + count(again, Field::http2_settings) ==
          0);
  require(count(again, Field::connection) == (context.close ? 1U : 0U));
  require(head.max_forwards <= 0 || again.max_forwards == head.max_forwards - 1);
  check_forwarding(sent, again, context);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t seed = octets[0];
  const std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  RequestHead whole;
  RequestHead cut;
  const Progress progress = scan_whole(input, kLimits, whole);
  require(scan_cut(input, clockwise::fuzz::Cuts(seed), cut) == progress);
  require(test::summary(input, progress, cut) == test::summary(input, progress, whole));
  if (progress == Progress::complete && whole.max_forwards != 0) {
    check_round_trip(input.substr(0, whole.size), whole, seed);
  }
  return 0;
}
