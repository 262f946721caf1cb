# Installs the library, its headers and the package that find_package(sconce) reads. The package searches for LibTorch
# again with SconceTorch.cmake, which is installed with it. With SCONCE_INSTALL_TORCH_DIR, sconce-config.cmake contains
# the folder of this build's LibTorch, which is tried last. The package contains no other path of the build and no part
# of LibTorch.

include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

function(sconce_install)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/sconce")
  install(TARGETS sconce sconce_core sconce_data sconce_distributed sconce_io sconce_old_names
          sconce_report sconce_training sconce_vision
    EXPORT sconce-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  target_include_directories(sconce_old_names INTERFACE
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sconce_old_names>")
  install(DIRECTORY "${SCONCE_OLD_NAMES_DIR}/sconce"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sconce_old_names")
  install(EXPORT sconce-targets NAMESPACE sconce:: DESTINATION "${folder}")
  set(torch_of_build "")
  if(SCONCE_INSTALL_TORCH_DIR)
    set(torch_of_build "${SCONCE_TORCH_ROOT}")
  endif()
  set(torch_of_build_variant cpu)
  if(SCONCE_TORCH_IS_CUDA)
    set(torch_of_build_variant cuda)
  endif()
  configure_package_config_file(cmake/sconce-config.cmake.in
    "${CMAKE_CURRENT_BINARY_DIR}/sconce-config.cmake" INSTALL_DESTINATION "${folder}")
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sconce-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES
    "${CMAKE_CURRENT_BINARY_DIR}/sconce-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/sconce-config-version.cmake"
    cmake/SconceTorch.cmake
    DESTINATION "${folder}")
endfunction()
