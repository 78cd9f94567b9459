// A response head gives the same answer however it is cut; what is accepted and rewritten reads
// again as the same answer with one unambiguous framing.
#include <string>

#include "../tests/unit/http/splits.h"
#include "http/rewrite.h"
#include "splits.h"

namespace {

using namespace clockwise::http;
using clockwise::fuzz::require;

constexpr HeadLimits kLimits{.size = 2048, .fields = 20};

Progress scan_whole(std::string_view input, const HeadLimits& limits, Method method,
                    ResponseHead& head) {
  std::size_t scanned = 0;
  return scan_response(input, limits, method, head, scanned);
}

Progress scan_cut(std::string_view input, Method method, clockwise::fuzz::Cuts cuts,
                  ResponseHead& head) {
  std::size_t scanned = 0;
  for (std::size_t end = cuts.next(); end < input.size(); end += cuts.next()) {
    const Progress progress = scan_response(input.substr(0, end), kLimits, method, head, scanned);
    if (progress != Progress::incomplete) return progress;
  }
  return scan_response(input, kLimits, method, head, scanned);
}

void check_round_trip(std::string_view input, const ResponseHead& head, Method method,
                      std::uint8_t seed) {
  ResponseContext context;
  context.body = head.body;
  context.keep_alive = (seed & 1) != 0 && head.body.kind != BodyKind::until_close;
  context.head_or_no_body = head.body.kind == BodyKind::none;
  context.date = (seed & 2) != 0 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "";
  Gather gather;
  if (head.status < 200) {
    rewrite_interim(input, head, gather);
  } else {
    rewrite_response(input, head, context, gather);
  }
  std::string sent;
  for (const std::string_view slice : gather.slices()) sent.append(slice);

  ResponseHead again;
  require(scan_whole(sent, {.size = 1U << 20, .fields = 1000}, method, again) ==
          Progress::complete);
  require(again.size == sent.size() && again.minor_version == 1 && again.reusable);
  require(again.status == head.status);
  require(again.body.kind == head.body.kind && again.body.length == head.body.length);
  require(head.status < 200 || again.keep_alive == context.keep_alive);
  for (const FieldLine& line : again.fields) {
    require(line.id != Field::upgrade && line.id != Field::keep_alive && line.id != Field::te);
    require(head.status != 204 || line.id != Field::content_length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t seed = octets[0];
  const Method method = (seed & 4) != 0 ? Method::head : Method::get;
  const std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  ResponseHead whole;
  ResponseHead cut;
  const Progress progress = scan_whole(input, kLimits, method, whole);
  require(scan_cut(input, method, clockwise::fuzz::Cuts(seed), cut) == progress);
  require(test::summary(input, progress, cut) == test::summary(input, progress, whole));
  if (progress == Progress::complete) {
    check_round_trip(input.substr(0, whole.size), whole, method, seed);
  }
  return 0;
}
