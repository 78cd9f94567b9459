// Result<T>: a value, or an Error that tells an operator what was wrong, where, and what to do.
//
// Used where a failure is part of the contract (start, reload, commands). I/O on the request
// path reports boost::system::error_code instead, and broken invariants stop the process.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace clockwise {

struct Error {
  std::string message;  // one line, no trailing stop or newline
};

[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::runtime_error(error.message);
}

template <class T>
using Result = boost::system::result<T, Error>;

inline Error fail(std::string message) { return Error{std::move(message)}; }

}  // namespace clockwise
