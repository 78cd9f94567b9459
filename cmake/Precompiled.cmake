# The headers that most files of a library include are parsed once for all of them: parsing is five
# sixths of a build. g++ builds without, so that a file that fails to name what it uses is found.
option(CLOCKWISE_PRECOMPILE "Precompile the headers that many files share" ON)

set(CLOCKWISE_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <cstring>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <utility>
  <variant> <vector> <fmt/format.h>)
set(CLOCKWISE_ASIO_HEADERS <boost/asio/executor_work_guard.hpp>
  <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp>
  <boost/asio/local/stream_protocol.hpp> <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>
  <boost/asio/write.hpp>)
set(CLOCKWISE_TEST_HEADERS ${CLOCKWISE_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>
  <rapidcheck/gtest.h>)

# clockwise_precompile(TARGET HEADER...): has no effect where precompiled headers are not wanted.
function(clockwise_precompile target)
  if(NOT CLOCKWISE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang") # else no cache of compilations can know it again
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
