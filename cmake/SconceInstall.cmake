# Creates the two packages that find_package(sconce) can load.
#
# The first package is installed with the library and its headers. It searches for LibTorch again, using
# SconceTorch.cmake, which is also installed. With SCONCE_INSTALL_TORCH_FALLBACK, sconce-config.cmake contains the
# folder of this build's LibTorch and tries this folder last. The package does not contain other paths from the build or
# any part of LibTorch.
#
# The second package is the build folder: -Dsconce_DIR=<build folder> works without an installation. This package
# prefers the build's LibTorch over the active Python's LibTorch, and uses the headers and libraries in place.

include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(SconceSbom)

function(sconce_install)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/sconce")
  install(TARGETS sconce sconce_core sconce_capture sconce_data sconce_distributed sconce_io
          sconce_program sconce_report sconce_training sconce_vision
    EXPORT sconce-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  if(TARGET sconce_without_cuda)
    install(TARGETS sconce_without_cuda EXPORT sconce-targets OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/sconce")
  endif()
  install(EXPORT sconce-targets NAMESPACE sconce:: DESTINATION "${folder}")
  set(torch_of_build_variant cpu)
  if(SCONCE_TORCH_IS_CUDA)
    set(torch_of_build_variant cuda)
  endif()
  set(torch_of_build "")
  if(SCONCE_INSTALL_TORCH_FALLBACK)
    set(torch_of_build "${SCONCE_TORCH_ROOT}")
  endif()
  set(is_build OFF)
  set(this_sconce "the installed sconce")
  set(modules "\${CMAKE_CURRENT_LIST_DIR}")
  configure_package_config_file(cmake/sconce-config.cmake.in
    "${CMAKE_CURRENT_BINARY_DIR}/installed/sconce-config.cmake" INSTALL_DESTINATION "${folder}")
  set(torch_of_build "${SCONCE_TORCH_ROOT}")
  set(is_build ON)
  set(this_sconce sconce)
  set(how_to_build "cmake --build ${PROJECT_BINARY_DIR}")
  if(PROJECT_BINARY_DIR STREQUAL "${PROJECT_SOURCE_DIR}/build/default")
    set(how_to_build "cd ${PROJECT_SOURCE_DIR} && cmake --workflow --preset demo")
  endif()
  set(modules "${PROJECT_SOURCE_DIR}/cmake")
  sconce_zlib_of_build(zlib_of_build zlib_headers)
  configure_package_config_file(cmake/sconce-config.cmake.in
    "${CMAKE_CURRENT_BINARY_DIR}/sconce-config.cmake"
    INSTALL_DESTINATION "${PROJECT_BINARY_DIR}" INSTALL_PREFIX "${PROJECT_BINARY_DIR}")
  export(EXPORT sconce-targets NAMESPACE sconce:: FILE "${CMAKE_CURRENT_BINARY_DIR}/sconce-targets.cmake")
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sconce-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES
    "${CMAKE_CURRENT_BINARY_DIR}/installed/sconce-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/sconce-config-version.cmake"
    cmake/SconceBundle.cmake
    cmake/SconceBundleFiles.cmake
    cmake/SconceTorch.cmake
    LICENSE THIRD_PARTY.txt # for the bundles
    DESTINATION "${folder}")
endfunction()

# Installs the licenses and the bill of materials, once with the library and once with the programs. This function must
# be called last, because the programs add dependencies.
function(sconce_install_notices)
  sconce_write_sbom("${PROJECT_BINARY_DIR}/installed/sconce.spdx.json")
  set(notices LICENSE THIRD_PARTY.txt "${PROJECT_BINARY_DIR}/installed/sconce.spdx.json")
  install(FILES ${notices} DESTINATION "${CMAKE_INSTALL_DOCDIR}")
  install(FILES ${notices} DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT programs EXCLUDE_FROM_ALL)
endfunction()

# Sets <library> and <headers> for the zlib that this build links, which may differ from the system's zlib.
function(sconce_zlib_of_build library headers)
  if(TARGET zlibstatic) # built from source
    set(${library} "${zlib_BINARY_DIR}/${CMAKE_STATIC_LIBRARY_PREFIX}z${CMAKE_STATIC_LIBRARY_SUFFIX}" PARENT_SCOPE)
    set(${headers} "${zlib_SOURCE_DIR};${zlib_BINARY_DIR}" PARENT_SCOPE)
    return()
  endif()
  foreach(property IN ITEMS IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION)
    get_target_property(found ZLIB::ZLIB ${property})
    if(found)
      set(${library} "${found}" PARENT_SCOPE)
    endif()
  endforeach()
  get_target_property(found ZLIB::ZLIB INTERFACE_INCLUDE_DIRECTORIES)
  set(${headers} "${found}" PARENT_SCOPE)
endfunction()
