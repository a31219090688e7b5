# One way to declare each kind of target.
include(GoogleTest)

# paceline_library(NAME [SOURCES ...] [DEPS ...]): a library of one folder; header-only without SOURCES. Includes are
# written from the top of the tree ("transport/base/time.h").
function(paceline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} ${scope} ${ARG_DEPS})
endfunction()

# paceline_leave_out(NAME RESULT): whether PACELINE_TEST_FOLDERS, or a fuzz build, leaves out the programs of the folder
# being read; then NAME stays known, but is built only on demand.
function(paceline_leave_out name result)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(PACELINE_FUZZ OR NOT "${folder}" MATCHES "${PACELINE_TEST_FOLDERS}")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# paceline_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds] [SERIAL] [WHOLE]): one GoogleTest program. Each
# test case is a ctest of its own, called NAME.Suite.Case, so that a skipped case shows as skipped; ctest finds the cases
# when it starts. SERIAL: no other test runs beside it. WHOLE: the program is one ctest called NAME. The label `thorough`
# or `soak` keeps a test out of the default run of tools/test.
function(paceline_test name)
  cmake_parse_arguments(ARG "SERIAL;WHOLE" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  # Optimising instrumented test bodies would double what they take to compile, and gain nothing.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  paceline_leave_out(${name} left_out)
  if(left_out)
    return()
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL})
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
  else()
    gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES ${properties})
  endif()
endfunction()

# paceline_benchmark(NAME SOURCES ... DEPS ...): one Google Benchmark program; built with the tests, run by hand.
function(paceline_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks)
  paceline_leave_out(${name} left_out)
endfunction()

# paceline_fuzzer(NAME SOURCES ... DEPS ... CORPUS dir): with PACELINE_FUZZ a libFuzzer program, and a ctest that runs it
# for PACELINE_FUZZ_SECONDS; what it learns goes to the build folder. Without, the same LLVMFuzzerTestOneInput over the
# corpus as a ctest, so that old findings stay fixed.
function(paceline_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  get_filename_component(corpus ${ARG_CORPUS} ABSOLUTE)
  if(PACELINE_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(learned ${CMAKE_BINARY_DIR}/fuzz/${name}_learned)
    file(MAKE_DIRECTORY ${learned})
    add_test(NAME ${name} COMMAND ${name} -max_total_time=${PACELINE_FUZZ_SECONDS} -print_final_stats=1
                                  -artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/${name}_ ${learned} ${corpus})
    math(EXPR timeout "${PACELINE_FUZZ_SECONDS} + 120")
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "fuzz")
    add_dependencies(fuzzers ${name})
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus_runner.cc)
    add_test(NAME ${name}_corpus COMMAND ${name} ${corpus})
    set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 120 LABELS "fuzz")
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
if(PACELINE_FUZZ)
  add_custom_target(fuzzers)  # what the preset 'fuzz' builds
endif()
