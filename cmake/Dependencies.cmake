# Every library is a Debian 12 package; docs/building.md has the install line.
find_package(Threads REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS url json)
find_package(yaml-cpp 0.7 CONFIG REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp) # the namespace came with 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
find_package(prometheus-cpp CONFIG REQUIRED COMPONENTS core)
find_package(OpenSSL 3 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
add_library(xxhash ALIAS PkgConfig::xxhash)

# Asio and Beast are compiled once (src/io/asio.cpp, src/io/beast.cpp). The macros must
# be the same in every translation unit, so they hang on one target.
add_library(clockwise_asio INTERFACE)
target_link_libraries(clockwise_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(clockwise_asio INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED
  # Beast 1.81 asserts on input that a peer chooses (a chunk header cut before its LF).
  BOOST_DISABLE_ASSERTS)
