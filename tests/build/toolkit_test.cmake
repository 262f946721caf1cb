# Checks that the headers of the CUDA sources are found without a CUDA toolkit or next to an installed one. The sources
# are only preprocessed.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DTORCH=<LibTorch> -DSETUP=<SCONCE_SETUP_DIR>
#         -DTOOLKIT=<hidden|present|offline> -P toolkit_test.cmake
# hidden: runs in a separate mount namespace, in which empty folders cover every toolkit and /usr/local/include, which
# may link to a toolkit. Variables that name toolkits or the driver's stubs are unset. present: none of the headers may
# come from the toolkit. offline: pip finds no wheel for crt/, so a toolkit completes the wheels' headers, including
# NCCL's.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
find_program(nvcc nvcc NO_CACHE)
set(run "")
set(deps "")
if(TOOLKIT STREQUAL "offline")
  file(MAKE_DIRECTORY "${WORK}/toolkit/include")
  file(GLOB headers "${TORCH}/../nvidia/cu*/include/*" "${SETUP}/cuda-crt-*/nvidia/cu*/include/crt")
  foreach(header IN LISTS headers)
    cmake_path(GET header FILENAME name)
    file(CREATE_LINK "${header}" "${WORK}/toolkit/include/${name}" SYMBOLIC)
  endforeach()
  set(run "${CMAKE_COMMAND}" -E env "CUDA_HOME=${WORK}/toolkit" PIP_NO_INDEX=1)
  set(deps "-DSCONCE_DEPS_DIR=${SETUP}/deps")
  set(SETUP "${WORK}/setup")
elseif(TOOLKIT STREQUAL "hidden")
  execute_process(COMMAND unshare --mount true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(STATUS "skipped: no permission to make a mount namespace")
    return()
  endif()
  set(run unshare --mount sh -c [[
    # newlines, not semicolons: this text is a list item
    for folder in /usr/local/include /usr/local/cuda*/
    do mount -t tmpfs none "$folder" || exit 1
    done
    if [ -e /usr/local/bin/nvcc ]
    then mount --bind /dev/null /usr/local/bin/nvcc || exit 1
    fi
    unset CUDA_HOME CUDA_PATH LIBRARY_PATH CPATH
    if command -v nvcc || [ -e /usr/local/include/cuda.h ]
    then exit 1 # a toolkit is still visible
    fi
    exec "$@"]] sh)
elseif(NOT nvcc)
  message(STATUS "skipped: no nvcc on this machine")
  return()
endif()

set(from "the wheels next to LibTorch")
if(TOOLKIT STREQUAL "offline")
  set(from "the toolkit in ${WORK}/toolkit")
endif()

function(run what)
  execute_process(COMMAND ${run} ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("configuring" "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}" -G Ninja
    -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
    -DCMAKE_BUILD_TYPE=Preprocess -DCMAKE_CXX_FLAGS_PREPROCESS=-E ${deps}
    "-DTorch_DIR=${TORCH}/share/cmake/Torch" "-DSCONCE_SETUP_DIR=${SETUP}")
if(output MATCHES "CMake Warning" OR output MATCHES "nvcc|enable_language"
   OR NOT output MATCHES "sconce: CUDA [0-9.]+ headers .${from}")
  message(FATAL_ERROR "configuring: expected headers from ${from} and no warning\n${output}")
endif()
set(sources src/CMakeFiles/sconce_core.dir/cuda/device_properties.cpp.o
            src/distributed/CMakeFiles/sconce_distributed.dir/nccl.cpp.o)
run("building" "${CMAKE_COMMAND}" --build "${WORK}" --target ${sources})
if(TOOLKIT STREQUAL "present")
  file(REAL_PATH "${nvcc}" nvcc)
  cmake_path(GET nvcc PARENT_PATH toolkit)
  cmake_path(GET toolkit PARENT_PATH toolkit)
  run("listing the headers" ninja -C "${WORK}" -t deps ${sources})
  if(NOT output MATCHES "/cuda_runtime_api.h" OR output MATCHES "(${toolkit}|/usr/local/cuda[^/]*|/usr/local/include)/")
    message(FATAL_ERROR "headers: expected all of CUDA's from the wheels\n${output}")
  endif()
endif()
file(REMOVE_RECURSE "${WORK}")
