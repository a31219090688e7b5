# Language level, warnings, optimisation, sanitizers, and where things are put.
include(CheckCXXCompilerFlag)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(PACELINE_BUILD_COMMAND "Build the paceline command, and with the tests those of it" ON)
option(PACELINE_BUILD_TESTS "Build tests and benchmarks" ON)
option(PACELINE_FUZZ "Build fuzz targets with libFuzzer (needs clang)" OFF)
option(PACELINE_WERROR "Treat warnings as errors" ON)
option(PACELINE_CCACHE "Use ccache when it is installed" OFF)
if(PACELINE_CCACHE)
  set(precompile OFF)  # it would have to be told
else()
  set(precompile ON)
endif()
option(PACELINE_PRECOMPILED_HEADERS "Read the headers used everywhere once" ${precompile})
set(PACELINE_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")
# The thread sanitizer sees nothing in a program without threads: of the tests only those that have some are built there,
# and of the command what they ask for.
set(PACELINE_ONLY_THREADS OFF)
if(PACELINE_BUILD_TESTS AND PACELINE_SANITIZE MATCHES "thread")
  set(PACELINE_ONLY_THREADS ON)
endif()
set(PACELINE_FUZZ_SECONDS 20 CACHE STRING "How long the ctest of one fuzzer runs, with PACELINE_FUZZ")
set(PACELINE_TEST_FOLDERS "" CACHE STRING "Regular expression: build only the tests in folders that match it")

# Release: optimised, with function names and line numbers for backtraces and profiles, and no instruction that some
# x86-64 or arm64 machine lacks. Sanitize: fast enough to run every test, with readable traces; assertions stay on.
# Coverage: the same, and each process adds to the counts of the lines that it ran.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, Sanitize or Coverage" FORCE)
endif()
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
  set(CMAKE_${language}_FLAGS_DEBUG "-O0 -g")
  set(CMAKE_${language}_FLAGS_SANITIZE "-O1 -g1")
  set(CMAKE_${language}_FLAGS_COVERAGE "-O1 -g1 --coverage -fprofile-update=atomic")
endforeach()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
# One result on every machine: no fused multiply-add where the source has a product and a sum.
add_compile_options(-ffp-contract=off)
# Code goes into a shared library too; the compiler may inline within a file all the same.
add_compile_options(-fno-semantic-interposition)
# Zeroes a structure by stores of its own: the processor's string instruction, which GCC takes for those of 100 bytes and
# more, takes some 30 cycles to begin, and a message passes several of them.
check_cxx_compiler_flag("-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign" PACELINE_HAS_MEMSET_STRATEGY)
if(PACELINE_HAS_MEMSET_STRATEGY)
  add_compile_options("-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign")
endif()
if(PACELINE_WERROR)
  add_compile_options(-Werror)
endif()

# What a build does is written beside its objects (record), and tells the next build in the same folder what is done often
# and what hardly ever (use): tools/build_profiled. What was not run is optimised as without a profile.
set(PACELINE_PROFILE "" CACHE STRING "record or use: of what runs, by g++")
if(PACELINE_PROFILE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "PACELINE_PROFILE needs g++: use the preset 'profiled'")
  elseif(PACELINE_PROFILE STREQUAL "record")
    add_compile_options(-fprofile-generate -fprofile-update=prefer-atomic)
    add_link_options(-fprofile-generate)
  elseif(PACELINE_PROFILE STREQUAL "use")
    # A function that has changed since is built without its profile, with a warning. Copies of code for arguments that
    # are never given make g++ warn of bounds, in vain.
    add_compile_options(-fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile
                        -Wno-error=coverage-mismatch -Wno-stringop-overflow -Wno-stringop-overread)
    add_link_options(-fprofile-use -fprofile-partial-training -Wno-stringop-overflow -Wno-stringop-overread)
  else()
    message(FATAL_ERROR "PACELINE_PROFILE is '${PACELINE_PROFILE}': it may be record, use or nothing")
  endif()
endif()

if(PACELINE_SANITIZE)
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fno-sanitize=vptr,function)  # a program in C that uses the libraries would lack what they call
  endif()
endif()
if(PACELINE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PACELINE_FUZZ needs clang: use the preset 'fuzz', or -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Coverage feedback in every library; the fuzz programs alone link libFuzzer's main().
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(PACELINE_CCACHE)
  find_program(PACELINE_CCACHE_PROGRAM ccache)
  if(PACELINE_CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${PACELINE_CCACHE_PROGRAM})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PACELINE_CCACHE_PROGRAM})
  endif()
endif()
