# What `cmake --install` puts where: the command and its module, the two libraries with their headers, a CMake package
# (paceline::c, paceline::paceline) and pkg-config files. All of it may be moved afterwards.
# docs/decisions/0001-two-libraries.md says why there are two.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The C++ API as one shared library that needs no other package to compile or link with. Only the API's names leave it.
set(map_file ${PROJECT_SOURCE_DIR}/tools/cmake/paceline_cpp.map)
add_library(paceline_cpp SHARED $<TARGET_OBJECTS:paceline_api>)
target_link_libraries(paceline_cpp PRIVATE paceline_api)
target_include_directories(paceline_cpp INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(paceline_cpp INTERFACE cxx_std_20)
target_link_options(paceline_cpp PRIVATE -Wl,--version-script=${map_file})
set_target_properties(paceline_cpp PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${map_file} EXPORT_NAME paceline)
set_target_properties(paceline_c PROPERTIES EXPORT_NAME c)

if(PACELINE_BUILD_COMMAND AND NOT PACELINE_ONLY_THREADS)
  install(TARGETS paceline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS paceline_c paceline_cpp EXPORT paceline_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET paceline_libfabric)  # for FI_PROVIDER_PATH
  install(TARGETS paceline_libfabric LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/libfabric)
endif()
install(TARGETS paceline_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})  # where the loader finds it for NCCL_NET_PLUGIN
if(TARGET paceline_study_mpi AND NOT PACELINE_ONLY_THREADS)
  install(TARGETS paceline_study_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/paceline)
endif()
if(TARGET paceline_dpdk)
  install(TARGETS paceline_dpdk LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/paceline)
endif()
install(DIRECTORY api/cpp/paceline api/c/paceline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/paceline)
install(EXPORT paceline_targets NAMESPACE paceline:: FILE paceline-config.cmake DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/paceline-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/paceline-config-version.cmake DESTINATION ${package_folder})

# From lib/pkgconfig up to the prefix, however deep the library folder is.
file(RELATIVE_PATH up_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(library paceline paceline_cpp)
  configure_file(tools/cmake/${library}.pc.in packaging/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/packaging/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
