# What `cmake --install` puts where, and the package that find_package(trinco COMPONENTS ...) finds.
# A component is the name of a library: breaker, lock, memory, ...; simulator and tests stay here.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# trinco_install(): the libraries that trinco_library has made so far. The target `installed` builds
# what `cmake --install` needs and nothing else; the program joins it.
function(trinco_install)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trinco)
  get_property(targets GLOBAL PROPERTY TRINCO_LIBRARIES)
  add_custom_target(installed)
  add_dependencies(installed ${targets})
  install(TARGETS ${targets} EXPORT trinco_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT trinco_targets NAMESPACE trinco:: DESTINATION ${package_dir})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/trinco DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.hpp")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/trinco-config.cmake.in
                                ${PROJECT_BINARY_DIR}/trinco-config.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/trinco-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/trinco-config.cmake
                ${PROJECT_BINARY_DIR}/trinco-config-version.cmake
          DESTINATION ${package_dir})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
