// What the tests of experiments share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "simulate/experiment.h"

namespace clockwise::simulate {

inline Nodes nodes(std::initializer_list<std::string> names) {
  Nodes list;
  for (const std::string& name : names) list.push_back({name});
  return list;
}

inline KeySeries keys(std::uint64_t count) { return KeySeries::parse("key:{}", count).value(); }

inline Row row_of(const Contestant& contestant, const Change& change,
                  std::uint64_t count = 20'000) {
  return run({contestant, change}, keys(count), [](std::uint64_t) {}).value();
}

inline Row row_of(std::string_view scheme, const Change& change, std::uint64_t count = 20'000) {
  return row_of(contestant(scheme).value(), change, count);
}

}  // namespace clockwise::simulate
