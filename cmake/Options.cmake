# Language level, warnings, hardening and sanitizers, gathered in one interface
# target that every target of the project links.
option(CLOCKWISE_TESTS "Build the tests" ON)
option(CLOCKWISE_BENCHMARKS "Build the micro benchmarks" OFF)
option(CLOCKWISE_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
option(CLOCKWISE_WERROR "Treat warnings as errors" ON)
set(CLOCKWISE_SANITIZE "" CACHE STRING "Value of -fsanitize=, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(clockwise_flags INTERFACE)
target_include_directories(clockwise_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(clockwise_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
  -Woverloaded-virtual -Wconversion -Wno-sign-conversion -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(clockwise_flags INTERFACE -Wno-missing-braces)
else()
  # g++ 12 reports these wrongly inside the standard library at -O2.
  target_compile_options(clockwise_flags INTERFACE
    -Wno-missing-field-initializers -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
    -Wno-maybe-uninitialized)
endif()
if(CLOCKWISE_WERROR)
  target_compile_options(clockwise_flags INTERFACE -Werror)
endif()

if(CLOCKWISE_SANITIZE)
  target_compile_options(clockwise_flags INTERFACE -fsanitize=${CLOCKWISE_SANITIZE}
    -fno-sanitize-recover=all -g1)
  target_link_options(clockwise_flags INTERFACE -fsanitize=${CLOCKWISE_SANITIZE})
else()
  target_compile_options(clockwise_flags INTERFACE -fstack-protector-strong)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    target_compile_options(clockwise_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()
target_compile_definitions(clockwise_flags INTERFACE _GLIBCXX_ASSERTIONS)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
target_link_options(clockwise_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_link_options(clockwise_flags INTERFACE -fuse-ld=lld)
endif()
