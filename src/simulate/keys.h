// The keys of an experiment: a text with a running number in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::simulate {

class KeySeries {
 public:
  // `format` has one `{}`, which stands for 0 to count - 1: "key:{}". Fails when it has none, or
  // two, and when there are no keys or more than a thousand million.
  [[nodiscard]] static Result<KeySeries> parse(std::string_view format, std::uint64_t count);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  // Key `number`, written into `buffer`: valid until the buffer changes.
  [[nodiscard]] std::string_view write(std::uint64_t number, std::string& buffer) const;

 private:
  KeySeries(std::string_view prefix, std::string_view suffix, std::uint64_t count)
      : prefix_(prefix), suffix_(suffix), count_(count) {}

  std::string prefix_, suffix_;
  std::uint64_t count_;
};

}  // namespace clockwise::simulate
