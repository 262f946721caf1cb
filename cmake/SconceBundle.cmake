# Packs a program with the libraries that it needs, so that it runs on machines without LibTorch, Python, or a compiler.
# `find_package(sconce)` includes this file.
#
#   sconce_bundle(TARGET <program> [CPU])
#
# Call this function last, in the folder that adds the program. It adds the install component <program>, which contains:
#
#   bin/<program>                      finds its libraries relative to its own location
#   lib/<program>/                     the libraries, except glibc and the NVIDIA driver's libraries
#   share/doc/<program>/licenses/      one folder for sconce and one for each package that provides a library
#
#   cmake --install <build> --component <program> --prefix <folder> --strip    makes the folder
#   cpack -G TGZ, cpack -G DEB                                                 in <build>, make the archives
#
# With CPU, the program is linked without libtorch_cuda and without the libraries that only libtorch_cuda needs. GPU
# operations then throw, as they do with a CPU build of LibTorch. With a CPU build of LibTorch, the CPU option has no
# effect.
#
# The archives contain only this component. CPack variables that the project sets before the call are kept. A project
# that calls include(CPack) itself creates its own archives instead.

include_guard(GLOBAL)

function(sconce_bundle)
  cmake_parse_arguments(PARSE_ARGV 0 bundle "CPU" "TARGET" "")
  if(NOT TARGET "${bundle_TARGET}" OR bundle_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "  sconce_bundle: expected TARGET <program> [CPU], got '${ARGN}'")
  endif()
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "  sconce_bundle: expected Linux, got ${CMAKE_SYSTEM_NAME}")
  endif()
  set(target ${bundle_TARGET})
  if(bundle_CPU)
    sconce_link_without_cuda(${target})
  endif()
  # Uses DT_RPATH instead of DT_RUNPATH, because DT_RPATH also applies to indirect dependencies and is not overridden by
  # LD_LIBRARY_PATH.
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  # The libraries are one folder below lib, because the run paths in the LibTorch libraries begin with
  # $ORIGIN/../../nvidia. Therefore, these paths stay inside the bundle.
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib/${target}" INSTALL_RPATH_USE_LINK_PATH OFF)
  install(TARGETS ${target} RUNTIME DESTINATION bin COMPONENT ${target} EXCLUDE_FROM_ALL)
  get_property(torch GLOBAL PROPERTY SCONCE_TORCH_ROOT)
  install(CODE "
set(bundle_name [==[${target}]==])
set(bundle_program [==[$<TARGET_FILE:${target}>]==])
set(bundle_is_cpu ${bundle_CPU})
set(bundle_build [==[${CMAKE_BINARY_DIR}]==])
set(bundle_torch [==[${torch}]==])
set(bundle_strip [==[${CMAKE_STRIP}]==])
include([==[${CMAKE_CURRENT_FUNCTION_LIST_DIR}/SconceBundleFiles.cmake]==])
sconce_bundle_files()"
    COMPONENT ${target} EXCLUDE_FROM_ALL)
  sconce_set_up_cpack(${target})
endfunction()

# Replaces the members of sconce's archives that call CUDA, and omits libtorch_cuda.
function(sconce_link_without_cuda target)
  get_target_property(type sconce::core TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    message(FATAL_ERROR "  sconce_bundle: CPU: expected static libraries of sconce, got shared ones")
  endif()
  set_target_properties(${target} PROPERTIES SCONCE_CPU ON)
  if(NOT TARGET sconce::without_cuda) # sconce was built without the CUDA headers
    return()
  endif()
  get_target_property(is_imported sconce::without_cuda IMPORTED)
  if(is_imported)
    get_target_property(configurations sconce::without_cuda IMPORTED_CONFIGURATIONS)
    list(GET configurations 0 configuration)
    get_target_property(objects sconce::without_cuda IMPORTED_OBJECTS_${configuration})
    foreach(object IN LISTS objects)
      if(NOT EXISTS "${object}") # happens in sconce's build folder after the demo
        message(FATAL_ERROR "  sconce_bundle: CPU: ${object} is not built yet. "
                            "Build sconce's target sconce_without_cuda")
      endif()
    endforeach()
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:sconce::without_cuda>)
endfunction()

# Writes the CPack configuration. The archives contain only the component <target>.
function(sconce_set_up_cpack target)
  execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc ERROR_QUIET)
  string(REGEX MATCH "[0-9.]+" glibc "${glibc}") # the version that the program is linked with
  sconce_cpack_default(CPACK_PACKAGE_NAME "${target}")
  sconce_cpack_default(CPACK_PACKAGE_VENDOR "${PROJECT_NAME}")
  sconce_cpack_default(CPACK_PACKAGE_CONTACT "${PROJECT_NAME}")
  sconce_cpack_default(CPACK_STRIP_FILES ON)
  sconce_cpack_default(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  sconce_cpack_default(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc})")
  set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};${PROJECT_NAME};${target};/")
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endfunction()

# Sets a CPack variable unless the project has already set it.
macro(sconce_cpack_default variable value)
  if(NOT DEFINED ${variable})
    set(${variable} "${value}")
  endif()
endmacro()
