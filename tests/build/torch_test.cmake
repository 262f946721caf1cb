# How the configure step meets a LibTorch that is wrong or missing.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DDEPS=<SCONCE_DEPS_DIR for what is not installed>
#         -P torch_test.cmake
cmake_minimum_required(VERSION 3.25)

# What the environment may name would be found before the stand-ins.
foreach(name Torch_DIR Torch_ROOT CMAKE_PREFIX_PATH PYTHONPATH)
  unset(ENV{${name}})
endforeach()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# Configures sconce in a folder of its own; the rest are arguments of cmake. Sets result and output.
macro(configure name)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${name}" -G Ninja
            -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF -DSCONCE_SETUP_DIR=${WORK}/${name}-setup
            -DSCONCE_DEPS_DIR=${DEPS}
            ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
endmacro()

# Fails unless the configure run stopped with sconce's own message of at most eight lines, in which
# each of the given texts stands.
macro(expect_stop name)
  if(result EQUAL 0)
    message(FATAL_ERROR "${name}: configured, expected a stop\n${output}")
  endif()
  if(NOT output MATCHES "\n *sconce: ([^\n]*(\n[^\n]+)*)")
    message(FATAL_ERROR "${name}: no message of sconce's\n${output}")
  endif()
  set(text "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "Call Stack.*" "" text "${text}")
  string(REGEX MATCHALL "\n" breaks "${text}")
  list(LENGTH breaks count)
  if(count GREATER_EQUAL 8)
    message(FATAL_ERROR "${name}: a message of more than eight lines\n${text}")
  endif()
  foreach(part ${ARGN})
    string(FIND "${text}" "${part}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "${name}: '${part}' is not in the message:\n${text}")
    endif()
  endforeach()
  message(STATUS "${name}: as expected")
endmacro()

# A stand-in for LibTorch that has a version and a target, and nothing else.
function(make_torch folder version)
  file(WRITE "${folder}/share/cmake/Torch/TorchConfigVersion.cmake"
       "set(PACKAGE_VERSION ${version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  file(WRITE "${folder}/share/cmake/Torch/TorchConfig.cmake"
       "add_library(torch_library INTERFACE IMPORTED)\nset(Torch_FOUND TRUE)\n")
endfunction()

# A Python that sees no packages, so no torch; <body> is shell that may act before it.
function(make_python file body)
  find_program(real python3 REQUIRED)
  file(WRITE "${file}" "#!/bin/sh\n${body}\nexec '${real}' -S \"$@\"\n")
  file(CHMOD "${file}" PERMISSIONS OWNER_READ OWNER_EXECUTE OWNER_WRITE)
endfunction()

make_torch("${WORK}/torch-old" 2.4.0)
configure(old -DTorch_DIR=${WORK}/torch-old/share/cmake/Torch)
expect_stop(old "LibTorch 2.4.0 is too old" "2.11.0 to 2.15.0 are supported"
            "${WORK}/torch-old" "pip install torch==" "Torch_DIR=")

make_torch("${WORK}/torch-new" 2.99.0)
configure(new -DTorch_DIR=${WORK}/torch-new/share/cmake/Torch)
if(NOT result EQUAL 0 OR NOT output MATCHES "LibTorch 2.99.0 is newer than 2.15.0")
  message(FATAL_ERROR "new: expected a warning and no stop\n${output}")
endif()
message(STATUS "new: as expected")

configure(misspelt -DTorch_DIR=${WORK}/nowhere)
expect_stop(misspelt "Torch_DIR names no LibTorch: ${WORK}/nowhere" "<libtorch>/share/cmake/Torch")

make_torch("${WORK}/torch-named" 2.12.0)
configure(named -DCMAKE_PREFIX_PATH=${WORK}/torch-named)
if(NOT result EQUAL 0 OR NOT output MATCHES
   "-- sconce: LibTorch 2.12.0, CPU .named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/torch-named")
  message(FATAL_ERROR "named: expected the LibTorch that CMAKE_PREFIX_PATH names\n${output}")
endif()
message(STATUS "named: as expected")

make_python("${WORK}/python-no-venv" [[case "$*" in "-m venv"*) echo "Error: ensurepip is not available" >&2; exit 1;; esac]])
configure(no-venv -DPython3_EXECUTABLE=${WORK}/python-no-venv)
expect_stop(no-venv "making a virtual environment with ${WORK}/python-no-venv failed"
            "ensurepip is not available" "apt install python3-venv")

# What pip meets on a machine without network, at once.
set(ENV{PIP_NO_INDEX} 1)
set(ENV{PIP_FIND_LINKS} "")
make_python("${WORK}/python-no-network" "")
configure(no-network -DPython3_EXECUTABLE=${WORK}/python-no-network)
expect_stop(no-network "installing torch 2.15.0 with pip failed" "Could not find a version"
            "Looked before in:" "Torch_DIR=")
file(GLOB taken "${WORK}/no-network-setup/torch-*/complete")
if(taken)
  message(FATAL_ERROR "no-network: an environment that was not finished counts as complete")
endif()
file(REMOVE_RECURSE "${WORK}")
