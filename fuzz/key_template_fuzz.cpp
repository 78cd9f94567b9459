// Any text as a template (the first line), with what it ignores (the second), and any octets as the
// head of a request: no crash, one key however the scratch looked before, and the normal forms keep
// the promises of http/normalize.h.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/key_template.h"
#include "http/normalize.h"
#include "splits.h"

namespace {

using namespace clockwise::http;
using clockwise::fuzz::require;

std::string_view take_line(std::string_view& input) {
  const std::string_view line = input.substr(0, input.find('\n'));
  input.remove_prefix(line.size() < input.size() ? line.size() + 1 : line.size());
  return line;
}

void check_normal_forms(std::string_view uri) {
  const std::string before = "/b?c&";
  std::string normal;
  std::string twice;
  append_normal_uri(uri, {}, normal);
  append_normal_uri(normal, {}, twice);
  require(normal == twice && normal.size() <= uri.size());

  std::string decoded = before;
  append_decoded_path(uri, decoded);
  require(decoded.starts_with(before) && decoded.size() <= before.size() + uri.size());
  require(decoded.find("/../", before.size()) == std::string::npos);
  require(decoded.find("//", before.size()) == std::string::npos);
}

void check_keys(const KeyTemplate& made, std::string_view head, const RequestHead& request) {
  const KeyParts parts{.uri = request.uri,
                       .host = request.authority,
                       .scheme = "https",
                       .method = request.method,
                       .client_ip = "2001:db8::1",
                       .octets = head,
                       .fields = request.fields};
  std::string fresh;
  std::string used(300, 'x');
  const std::string_view key = made.render(parts, fresh);
  require(key == made.render(parts, used));
  require(!key.empty() || request.uri.empty());
  require(!made.is_uri() || key.data() == request.uri.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  std::string_view input = clockwise::fuzz::text_of(octets, size);
  const std::string_view text = take_line(input);
  const std::string ignored(take_line(input));
  check_normal_forms(input);

  const HostForm form = size % 2 == 0 ? HostForm::name : HostForm::authority;
  const auto made = ignored.empty() ? KeyTemplate::parse(text, {}, form)
                                    : KeyTemplate::parse(text, {ignored}, form);
  if (!made) {
    require(!made.error().message.empty());
    return 0;
  }
  RequestHead request;
  std::size_t scanned = 0;
  const bool whole = scan_request(input, {}, request, scanned) == Progress::complete;
  if (whole) check_keys(*made, input, request);
  return 0;
}
