# One way to declare each kind of target.
include(GoogleTest)

# The standard headers, and what of Abseil and GoogleTest is everywhere, are compiled once: reading them takes a third of
# a build. Sources still include what they use; clang-tidy, which has none of this, sees to that: in CI for the
# libraries that it reads there, by `tools/test --tidy` for all.
set(paceline_precompiled_headers
    <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <deque> <functional> <map> <memory> <optional> <set> <span>
    <string> <string_view> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)

# paceline_precompile(NAME [EXECUTABLE] [FLAGS ...] [HEADERS ...] [DEPS ...]): those headers and HEADERS, for libraries, or
# for programs, compiled with FLAGS and what DEPS ask for.
function(paceline_precompile name)
  cmake_parse_arguments(ARG "EXECUTABLE" "" "FLAGS;HEADERS;DEPS" ${ARGN})
  if(NOT PACELINE_PRECOMPILED_HEADERS)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "")
  if(ARG_EXECUTABLE)
    file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "int main() { return 0; }\n")
    add_executable(${name} ${CMAKE_BINARY_DIR}/${name}.cc)
  else()
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  endif()
  target_compile_options(${name} PRIVATE ${ARG_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${paceline_precompiled_headers} ${ARG_HEADERS})
endfunction()

# Optimising the bodies of tests, or the instrumented code of the command, would double what they take to compile, and gain
# nothing; nor do the lines of tests in a release's backtraces, which are an eighth.
set(paceline_test_flags $<$<CONFIG:Release,Sanitize,Coverage>:-O0> $<$<CONFIG:Release>:-g0>)
set(paceline_tool_flags $<$<CONFIG:Sanitize,Coverage>:-O0>)
paceline_precompile(paceline_precompiled)
paceline_precompile(paceline_precompiled_tools FLAGS ${paceline_tool_flags})
if(PACELINE_BUILD_TESTS)
  paceline_precompile(paceline_precompiled_tests EXECUTABLE FLAGS ${paceline_test_flags}
                      HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPS GTest::gmock GTest::gtest)
endif()

# paceline_use_precompiled(NAME FROM): does nothing for a target with a source in C.
function(paceline_use_precompiled name from)
  get_target_property(sources ${name} SOURCES)
  if(PACELINE_PRECOMPILED_HEADERS AND NOT "${sources}" MATCHES "\\.c(;|$)")
    target_precompile_headers(${name} REUSE_FROM ${from})
  endif()
endfunction()

# paceline_library(NAME [SOURCES ...] [DEPS ...]): a library of one folder; header-only without SOURCES. Includes are
# written from the top of the tree ("transport/base/time.h").
function(paceline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tools/")
      target_compile_options(${name} PRIVATE ${paceline_tool_flags})
      paceline_use_precompiled(${name} paceline_precompiled_tools)
    else()
      paceline_use_precompiled(${name} paceline_precompiled)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} ${scope} ${ARG_DEPS})
endfunction()

# paceline_leave_out(NAME RESULT): whether PACELINE_TEST_FOLDERS, a fuzz build, sanitizers for a benchmark, or the thread
# sanitizer for what has no threads, leave NAME of the folder being read out; then it stays known, but is built only on
# demand.
function(paceline_leave_out name result)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  get_target_property(measures ${name} PACELINE_BENCHMARK)
  get_target_property(threads ${name} PACELINE_THREADS)
  if(PACELINE_FUZZ OR (PACELINE_SANITIZE AND measures) OR (PACELINE_ONLY_THREADS AND NOT threads) OR
     NOT "${folder}" MATCHES "${PACELINE_TEST_FOLDERS}")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# paceline_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE] [SERIAL]
# [WHOLE] [TOGETHER] [THREADS]): one GoogleTest program. Each test case is a ctest of its own, called NAME.Suite.Case, so
# that a skipped case shows as skipped; ctest finds the cases when it starts. SERIAL: no other test runs beside it. WHOLE:
# the program is one ctest called NAME. TOGETHER: so it is under sanitizers, where a process takes longer to begin than
# most cases to run; for programs whose cases leave nothing behind in the process. THREADS: it has some, so that the thread
# sanitizer is run over it. The label `thorough` or `soak` keeps a test out of the default run of tools/test.
function(paceline_test name)
  cmake_parse_arguments(ARG "SERIAL;WHOLE;TOGETHER;THREADS" "TIMEOUT" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(ARG_TOGETHER AND PACELINE_SANITIZE)
    set(ARG_WHOLE ON)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${paceline_test_flags})
  paceline_use_precompiled(${name} paceline_precompiled_tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
                                           PACELINE_THREADS ${ARG_THREADS})
  paceline_leave_out(${name} left_out)
  if(left_out)
    return()
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL})
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(ARG_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
  if(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
  else()
    gtest_discover_tests(${name} TEST_PREFIX ${name}. NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES ${properties})
  endif()
endfunction()

# paceline_benchmark(NAME SOURCES ... DEPS ...): one program that measures; built with the tests, run by hand, left out
# under sanitizers, which leave nothing to measure.
function(paceline_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks PACELINE_BENCHMARK ON)
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
    set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 120 LABELS "fuzz" COST 50)  # early, as one is long
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
if(PACELINE_FUZZ)
  add_custom_target(fuzzers)  # what the preset 'fuzz' builds
endif()
