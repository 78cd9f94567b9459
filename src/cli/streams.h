// Lines in and text out, byte for byte and fast: millions of keys pass through `lookup -`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::cli {

// Calls `line` for each line of the descriptor, without its newline, nothing else taken off; a last
// line may lack the newline. After each read from the descriptor, once its lines are done, calls
// `after_read` with the bytes read so far. Stops at the first error of either, or of the
// descriptor.
[[nodiscard]] Result<void> read_lines(int descriptor,
                                      const std::function<Result<void>(std::string_view)>& line,
                                      const std::function<Result<void>(std::uint64_t)>& after_read);

// Collects text for standard output; what is appended shows at the next flush.
class Output {
 public:
  void append(std::string_view text) { text_ += text; }
  [[nodiscard]] Result<void> flush();

 private:
  std::string text_;
};

}  // namespace clockwise::cli
