// A chunked body gives the same data, the same end and the same error however it is cut.
#include <string>

#include "http/chunked.h"
#include "splits.h"

namespace {

using clockwise::fuzz::require;
using clockwise::http::ChunkedDecoder;

struct Decoded {
  ChunkedDecoder::State state = ChunkedDecoder::State::more;
  std::string data;
  std::size_t consumed = 0;
  std::string error;

  bool operator==(const Decoded&) const = default;
};

template <class NextSize>
Decoded decode(std::string_view input, NextSize next_size) {
  ChunkedDecoder decoder;
  Decoded result;
  while (result.consumed < input.size() && result.state == ChunkedDecoder::State::more) {
    const std::string_view rest = input.substr(result.consumed);
    const auto step = decoder.step(rest.substr(0, next_size()));
    require(step.consumed > 0 && step.consumed <= rest.size());
    require(step.data.empty() ||
            (step.data.data() >= rest.data() &&
             step.data.data() + step.data.size() == rest.data() + step.consumed));
    result.state = step.state;
    result.data.append(step.data);
    result.consumed += step.consumed;
  }
  result.error = decoder.error();
  require(result.error.empty() == (result.state != ChunkedDecoder::State::bad));
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view input = clockwise::fuzz::text_of(octets + 1, size - 1);
  clockwise::fuzz::Cuts cuts(octets[0]);
  const Decoded whole = decode(input, [&] { return input.size(); });
  require(decode(input, [&] { return cuts.next(); }) == whole);
  require(decode(input, [] { return std::size_t{1}; }) == whole);
  return 0;
}
