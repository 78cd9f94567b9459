# bench/micro/*.cpp -> one Google Benchmark program each.
find_package(benchmark CONFIG REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/micro/*.cpp)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE clockwise_upstream clockwise_flags benchmark::benchmark
    benchmark::benchmark_main xxhash)
endforeach()
