#include "admin/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <charconv>

namespace clockwise::admin {

bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::size_t comma = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view coding = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(std::min(comma + 1, accept_encoding.size()));
    const std::string name =
        boost::algorithm::trim_copy(std::string(coding.substr(0, coding.find(';'))));
    if (!boost::algorithm::iequals(name, "gzip") && name != "*") continue;
    const std::size_t q = coding.find("q=");
    double quality = 1;
    if (q != std::string_view::npos)
      std::from_chars(coding.data() + q + 2, coding.data() + coding.size(), quality);
    return quality > 0;
  }
  return false;
}

std::string gzipped(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip header
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in(text);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace clockwise::admin
