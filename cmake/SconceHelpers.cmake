# What this build's parts share: the lock on set-up, warnings, the precompiled header, programs.

include_guard(GLOBAL)

# Keeps other builds out of SCONCE_SETUP_DIR until the calling function returns.
macro(sconce_lock_setup)
  file(MAKE_DIRECTORY "${SCONCE_SETUP_DIR}")
  file(LOCK "${SCONCE_SETUP_DIR}/torch.lock" GUARD FUNCTION TIMEOUT 0 RESULT_VARIABLE busy)
  if(busy)
    message(STATUS "sconce: another build fills ${SCONCE_SETUP_DIR}; waiting for it")
    file(LOCK "${SCONCE_SETUP_DIR}/torch.lock" GUARD FUNCTION)
  endif()
endmacro()

# Warnings are this build's own matter: private, and errors only where a preset says so.
function(sconce_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
endfunction()

# Lets <target> use the precompiled header of all of torch. It is compiled once a build folder, by
# the first target that asks for it, and the others use that one.
function(sconce_use_pch target)
  if(NOT TARGET sconce_pch)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/sconce_pch.cpp" CONTENT "") # kept if there
    add_library(sconce_pch OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/sconce_pch.cpp")
    target_link_libraries(sconce_pch PRIVATE sconce::torch)
    set_target_properties(sconce_pch PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
    sconce_set_warnings(sconce_pch)
    target_precompile_headers(sconce_pch PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM sconce_pch)
endfunction()

# Adds a program of this build that links sconce.
function(sconce_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE sconce::sconce)
  # The precompiled header is made for the library too, so for -fPIC; CMake would give a program
  # -fPIE, with which the header is not used.
  target_compile_options(${name} PRIVATE -fPIC)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  sconce_set_warnings(${name})
  sconce_use_pch(${name})
endfunction()
