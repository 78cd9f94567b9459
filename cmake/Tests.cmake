# tests/unit/MODULE/*_test.cpp -> one program per module; tests/integration/test_*.py -> one
# test each, run against the built binary.
find_package(GTest CONFIG REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
include(GoogleTest)

file(GLOB test_folders CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/*)
foreach(folder ${test_folders})
  get_filename_component(module ${folder} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  if(sources AND TARGET clockwise_${module})
    add_executable(${module}_test ${sources})
    target_link_libraries(${module}_test PRIVATE clockwise_${module} clockwise_flags
      rapidcheck rapidcheck_gtest GTest::gmock GTest::gtest_main Boost::json)
    target_compile_definitions(${module}_test PRIVATE
      CLOCKWISE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_include_directories(${module}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    # What is tested is optimised as it ships; to optimise the tests would take a third of the build.
    target_compile_options(${module}_test PRIVATE -O0 -U_FORTIFY_SOURCE)
    list(LENGTH sources count)
    if(count GREATER 2)
      clockwise_precompile(${module}_test ${CLOCKWISE_TEST_HEADERS})
    endif()
    if(CLOCKWISE_SANITIZE) # a process for each test would spend its time on starting
      add_test(NAME ${module}.all COMMAND ${module}_test --gtest_brief=1)
      set_tests_properties(${module}.all PROPERTIES TIMEOUT 900)
    else()
      gtest_discover_tests(${module}_test TEST_PREFIX ${module}. DISCOVERY_TIMEOUT 60
        PROPERTIES TIMEOUT 120)
    endif()
  endif()
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/integration/test_*.py)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REPLACE "test_" "" name ${name})
  add_test(NAME integration.${name} COMMAND ${Python3_EXECUTABLE} -B ${script})
  set_tests_properties(integration.${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "CLOCKWISE=$<TARGET_FILE:clockwise>;CLOCKWISE_SANITIZE=${CLOCKWISE_SANITIZE};PYTHONDONTWRITEBYTECODE=1")
endforeach()
