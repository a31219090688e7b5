# Installs the build into an empty folder, moves that folder, and builds and runs an outside project against it: once
# through its CMake package, once through pkg-config. Run with cmake -P; needs BUILD_DIR, CONSUMER_DIR, WORK_DIR,
# GENERATOR, C_COMPILER, CXX_COMPILER, FLAGS (sanitizers, or empty), PKG_CONFIG, INCLUDE_DIR and LIB_DIR (relative to the
# prefix), PYTHON (empty: none that could load the library) and PYTHON_DIR (relative, too), and WITH_MPI (whether the build
# has the module for it), WITH_DPDK likewise.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(prefix ${WORK_DIR}/moved)
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed ${prefix})
run(${prefix}/bin/paceline --version)
if(WITH_MPI AND NOT EXISTS ${prefix}/${LIB_DIR}/paceline/study_mpi.so)
  message(FATAL_ERROR "The module for studies under mpirun is not installed")
endif()

if(WITH_DPDK)
  execute_process(COMMAND ${prefix}/bin/paceline info OUTPUT_VARIABLE lanes COMMAND_ERROR_IS_FATAL ANY)
  if(NOT lanes MATCHES "yes +dpdk ")
    message(FATAL_ERROR "The module of the dpdk lane is not installed, or not found:\n${lanes}")
  endif()
endif()

if(PYTHON)
  # From its own folder it finds the library of the same installation.
  set(ENV{PYTHONPATH} ${prefix}/${PYTHON_DIR})
  run(${PYTHON} -B -c "import paceline; paceline.Context().close(); print(paceline.__file__, paceline.__version__)")
endif()

# The headers name no other package, and nothing but themselves.
file(GLOB_RECURSE headers ${prefix}/${INCLUDE_DIR}/*.h)
foreach(header IN LISTS headers)
  file(STRINGS ${header} foreign REGEX "^#include \"")
  list(FILTER foreign EXCLUDE REGEX "\"paceline/")
  if(foreign)
    message(FATAL_ERROR "${header} includes what is not installed: ${foreign}")
  endif()
endforeach()

# CMake package.
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DCMAKE_C_FLAGS=${FLAGS} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer_cpp)
run(${WORK_DIR}/consumer/consumer_c)

# pkg-config, and the dynamic linker told where the library is.
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIB_DIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIB_DIR})
function(flags_of package result)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(list UNIX_COMMAND "${text}")
  set(${result} ${list} PARENT_SCOPE)
endfunction()
flags_of(paceline c_use)
flags_of(paceline_cpp cpp_use)
run(${C_COMPILER} -std=c11 ${FLAGS} ${CONSUMER_DIR}/consumer.c -o ${WORK_DIR}/pkg_c ${c_use})
run(${CXX_COMPILER} -std=c++20 ${FLAGS} ${CONSUMER_DIR}/consumer.cc -o ${WORK_DIR}/pkg_cpp ${cpp_use})
run(${WORK_DIR}/pkg_c)
run(${WORK_DIR}/pkg_cpp)
