# Helpers shared by all parts of this build: the setup lock, warnings, precompiled headers, and programs.

include_guard(GLOBAL)

# Locks SCONCE_SETUP_DIR against other builds until the calling function returns.
macro(sconce_lock_setup)
  file(MAKE_DIRECTORY "${SCONCE_SETUP_DIR}")
  file(LOCK "${SCONCE_SETUP_DIR}/torch.lock" GUARD FUNCTION TIMEOUT 0 RESULT_VARIABLE busy)
  if(busy)
    message(STATUS "sconce: another build is filling ${SCONCE_SETUP_DIR}; waiting for it")
    file(LOCK "${SCONCE_SETUP_DIR}/torch.lock" GUARD FUNCTION)
  endif()
endmacro()

# Sets <out> to the Python whose torch package contains this build's LibTorch, or to an empty string. This is the Python
# in the wheel's environment or, if a distribution installed LibTorch, a Python whose torch links to the distribution's
# libraries.
function(sconce_python_of_torch out)
  cmake_path(SET python NORMALIZE "${SCONCE_TORCH_ROOT}/../../../../bin/python")
  if(NOT SCONCE_TORCH_ROOT MATCHES "/site-packages/torch$")
    find_package(Python3 COMPONENTS Interpreter QUIET)
    set(python "${Python3_EXECUTABLE}")
    execute_process(
      COMMAND "${python}" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(REAL_PATH "${torch}/lib/libtorch_cpu.so" of_python)
    file(REAL_PATH "${SCONCE_TORCH_LIBRARIES_DIR}/libtorch_cpu.so" of_build)
    if(NOT torch OR NOT of_python STREQUAL of_build)
      set(python "")
    endif()
  endif()
  set(${out} "${python}" PARENT_SCOPE)
endfunction()

# The warnings are private to this build, and are treated as errors only if a preset requests it. Any additional
# arguments are passed as flags.
function(sconce_set_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor ${ARGN})
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC treats the sources in a unity build as headers, where types in unnamed namespaces would be a mistake.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # The std::vector<bool> in LibTorch's torch::autograd::Function causes false positives.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# Adds the library sconce_<layer>, which users link as sconce::<layer>:
#   sconce_add_layer(<layer> <concept>...)
# A concept, such as data/data_loader, consists of a header in include/sconce, a source in src, or both. A project that
# adds sconce as a subdirectory builds only the layers that it links.
function(sconce_add_layer layer)
  set(target sconce_${layer})
  set(headers "")
  set(sources "")
  foreach(concept IN LISTS ARGN)
    set(header "${PROJECT_SOURCE_DIR}/include/sconce/${concept}.hpp")
    set(source "${PROJECT_SOURCE_DIR}/src/${concept}.cpp")
    if(concept IN_LIST SCONCE_WITHOUT_CUDA)
      set(source "${PROJECT_SOURCE_DIR}/src/no_cuda/${concept}.cpp")
    endif()
    if(NOT EXISTS "${header}" AND NOT EXISTS "${source}")
      message(FATAL_ERROR "sconce_add_layer: ${concept}: expected ${header} or ${source}")
    endif()
    if(EXISTS "${header}")
      list(APPEND headers "${header}")
    endif()
    if(EXISTS "${source}")
      list(APPEND sources "${source}")
    endif()
    if(EXISTS "${PROJECT_SOURCE_DIR}/src/no_cuda/${concept}.cpp")
      # These sources are compiled as separate archive members, so that sconce::without_cuda can replace them when a
      # program is linked.
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  add_library(${target} ${sources})
  add_library(sconce::${layer} ALIAS ${target})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  # Without this definition, a source that uses one operator includes the declarations of all operators, which takes 3
  # to 4 s.
  target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer} UNITY_BUILD_BATCH_SIZE 0
    POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  if(BUILD_SHARED_LIBS)
    # Exported symbols are not marked, so all symbols must be visible, even if the parent project hides its symbols.
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
    # Binary compatibility is guaranteed only between identical versions.
    set_target_properties(${target} PROPERTIES SOVERSION "${PROJECT_VERSION}")
    # All installed layers are in the same folder. The LibTorch folder is listed explicitly, because the build's run
    # paths are not installed.
    set(run_path "$ORIGIN")
    if(SCONCE_INSTALL_TORCH_FALLBACK)
      list(APPEND run_path "${SCONCE_TORCH_LIBRARIES_DIR}")
    endif()
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH ${run_path})
  endif()
  if(NOT sconce_IS_TOP_LEVEL AND NOT SCONCE_INSTALL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  sconce_set_warnings(${target} -Wconversion)
endfunction()

# Makes <target> use the precompiled header of sconce_core, torch/nn/module.h. GCC requires identical flags, so the
# target is compiled with the library's flags. Projects that add sconce as a subdirectory do not use it, because it
# takes 0.5 GB and their flags may differ.
function(sconce_use_core_pch target)
  if(sconce_IS_TOP_LEVEL AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM sconce_core)
  endif()
endfunction()

# Makes <target> use the precompiled header of torch/torch.h. The header is compiled once per build folder, for the
# first target that requests it. All targets share it and must use the same optimization level, because GCC 14 rejects
# it otherwise. Using the header adds 4.6 s to the compile time of each source, and the header of sconce_core adds half
# as much. Therefore, it pays off only for sources that already include torch/torch.h.
function(sconce_use_pch target)
  if(NOT TARGET sconce_pch)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/sconce_pch.cpp" CONTENT "") # an existing file is kept
    add_library(sconce_pch OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/sconce_pch.cpp")
    target_link_libraries(sconce_pch PRIVATE sconce::torch)
    set_target_properties(sconce_pch PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
    sconce_set_warnings(sconce_pch)
    target_precompile_headers(sconce_pch PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM sconce_pch)
endfunction()

# Adds a program that is part of this build and links sconce. In a unity build, all of its sources are compiled
# together.
function(sconce_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE sconce::sconce)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD_BATCH_SIZE 0
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  sconce_set_warnings(${name})
endfunction()

# Makes `cmake --install <build> --component programs` install a program. The program finds LibTorch through its run
# path, and also sconce if sconce is shared. The LibTorch folder is listed explicitly, because CMake removes the build's
# folders from the run path.
function(sconce_install_program name)
  if(NOT SCONCE_INSTALL)
    return()
  endif()
  set(run_path "")
  if(BUILD_SHARED_LIBS)
    list(APPEND run_path "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  endif()
  if(SCONCE_INSTALL_TORCH_FALLBACK)
    list(APPEND run_path "${SCONCE_TORCH_LIBRARIES_DIR}")
  endif()
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "${run_path}"
    INSTALL_RPATH_USE_LINK_PATH ${SCONCE_INSTALL_TORCH_FALLBACK}) # for libraries such as libpng
  if(SCONCE_INSTALL_TORCH_FALLBACK AND NOT BUILD_SHARED_LIBS)
    # A separate run path for the built program would end with a colon, which represents the working directory.
    set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT programs EXCLUDE_FROM_ALL)
endfunction()
