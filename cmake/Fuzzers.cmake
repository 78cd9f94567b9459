# fuzz/*_fuzz.cpp -> one libFuzzer program each; corpora stand beside them in fuzz/corpus/NAME.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cpp)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE clockwise_upstream clockwise_import
    clockwise_admin clockwise_flags)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
