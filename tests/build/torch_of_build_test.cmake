# Tests how an installed sconce finds the LibTorch that it was built with. A stand-in replaces LibTorch, so nothing is
# compiled.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DDEPS=<SCONCE_DEPS_DIR for libraries that are not installed>
#         -P torch_of_build_test.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/configure.cmake")

file(GLOB layers RELATIVE "${SOURCE}/src" "${SOURCE}/src/*/CMakeLists.txt") # without the core
list(TRANSFORM layers REPLACE "/.*" "")
list(LENGTH layers layer_count)

# Installs the configured build <name>, whose libraries are empty, and moves the installed files.
function(install name)
  file(TOUCH "${WORK}/${name}/src/libsconce_core.a")
  foreach(layer IN LISTS layers)
    file(TOUCH "${WORK}/${name}/src/${layer}/libsconce_${layer}.a")
  endforeach()
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK}/${name}" --prefix "${WORK}/first"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(RENAME "${WORK}/first" "${WORK}/moved")
endfunction()

# Configures a project with two folders that use the installed core. Its Python sees the packages in <packages>.
file(WRITE "${WORK}/project/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES CXX)
set(HOW REQUIRED CACHE STRING \"\")
list(APPEND CMAKE_SYSTEM_PREFIX_PATH \"${WORK}/system\")
add_subdirectory(part first)\nadd_subdirectory(part second)\n")
file(WRITE "${WORK}/project/part/CMakeLists.txt" [[
find_package(sconce ${HOW} COMPONENTS core)
cmake_path(GET CMAKE_CURRENT_BINARY_DIR FILENAME part)
message(STATUS "${part}: ${sconce_FOUND}${SCONCE_TORCH_VERSION}. ${sconce_NOT_FOUND_MESSAGE}")
]])
make_python("${WORK}/python" "")
set(anew -USCONCE_TORCH_CHOSEN -UTorch_DIR)
macro(use packages)
  set(ENV{PYTHONPATH} "${packages}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${WORK}/project" -B "${WORK}/project/build" -G Ninja
            "-Dsconce_DIR=${config}" -DPython3_EXECUTABLE=${WORK}/python ${anew} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  unset(ENV{PYTHONPATH})
endmacro()

set(torch "${WORK}/torch of the build")
make_torch("${torch}" 2.13.0)
configure(build "-DTorch_DIR=${torch}/share/cmake/Torch")
expect_configured(build "LibTorch 2.13.0, CPU")
install(build)
file(GLOB config "${WORK}/moved/lib*/cmake/sconce")

use("${WORK}/none")
expect_configured(of-build "LibTorch 2.13.0, CPU (the one that sconce was built with: ${torch})"
                  "first: 1. " "second: 1. ")

# Other suitable LibTorch installations take precedence. A torch from Python or the system that would be rejected does
# not.
make_torch("${WORK}/fitting/torch" 2.13.0)
use("${WORK}/fitting")
expect_configured(of-python "LibTorch 2.13.0, CPU (Python's torch: ${WORK}/fitting/torch)")
make_torch("${WORK}/older/torch" 2.12.0)
use("${WORK}/older")
expect_configured(older-of-python "Python's torch 2.12.0 for cpu is not the requested one"
                  "(the one that sconce was built with: ${torch})")
file(WRITE "${WORK}/fitting/torch/version.py" "cuda: Optional[str] = '13.2'\n")
use("${WORK}/fitting")
expect_configured(kind-of-python "Python's torch 2.13.0 for cuda is not the requested one"
                  "(the one that sconce was built with: ${torch})")
make_torch("${WORK}/system" 2.12.0)
use("${WORK}/none")
expect_configured(older-of-system "(the one that sconce was built with: ${torch})")
file(REMOVE_RECURSE "${WORK}/system")
use("${WORK}/none" "-DTorch_DIR=${WORK}/older/torch/share/cmake/Torch")
expect_stop(named "LibTorch 2.13.0 is required (the one that the installed sconce was built with), found 2.12.0")

# A LibTorch that has changed since the build is not used.
file(WRITE "${torch}/lib/libtorch_cuda.so" "")
use("${WORK}/none")
expect_stop(kind "The LibTorch that sconce was built with is for cuda now, not for cpu: ${torch}")
make_torch("${torch}" 2.14.0)
use("${WORK}/none")
expect_stop(version "The LibTorch that sconce was built with is LibTorch 2.14.0 now: ${torch}"
            "pip install torch==2.13.0")
make_torch("${torch}" 2.13.0)
file(REMOVE "${torch}/lib/libtorch_cuda.so")
use("${WORK}/none")
expect_configured(again "(the one that sconce was built with: ${torch})")
set(anew "")
file(REMOVE_RECURSE "${torch}")
use("${WORK}/none")
expect_stop(gone "The LibTorch that sconce was built with is gone: ${torch}" "pip install torch==2.13.0")
use("${WORK}/older")
expect_stop(gone-and-older "LibTorch 2.13.0 is required" "found 2.12.0")

# After another Python is activated, the same command uses that Python's torch, unless the first Python was specified
# explicitly.
make_torch("${WORK}/later/torch" 2.13.0)
make_python("${WORK}/bare/bin/python3" "")
make_python("${WORK}/active/bin/python3" "export PYTHONPATH='${WORK}/later'")
unset(ENV{VIRTUAL_ENV})
unset(ENV{CONDA_PREFIX})
set(path "$ENV{PATH}")
macro(use_active name)
  set(ENV{PATH} "${WORK}/${name}/bin:${path}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}/project" -B "${WORK}/project/build-active" -G Ninja
                          "-Dsconce_DIR=${config}" ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(ENV{PATH} "${path}")
endmacro()
use_active(bare)
expect_stop(bare "no LibTorch 2.11.0 to 2.15.0 found" "Python (${WORK}/bare/bin/python3 has no torch)")
use_active(active -DPython3_EXECUTABLE=${WORK}/bare/bin/python3)
expect_stop(bare-named "Python (${WORK}/bare/bin/python3 has no torch)")
use_active(active -UPython3_EXECUTABLE)
expect_configured(activated "LibTorch 2.13.0, CPU (Python's torch: ${WORK}/later/torch)")

# Without REQUIRED the project configures without sconce and keeps its own variables.
set(anew -USCONCE_TORCH_CHOSEN -UTorch_DIR)
set(optional -DHOW=QUIET)
use("${WORK}/none" ${optional})
expect_configured(optional-gone "first: 0. sconce: no LibTorch 2.11.0 to 2.15.0 found"
                  "second: 0. sconce: no LibTorch 2.11.0 to 2.15.0 found")
use("${WORK}/older" ${optional})
expect_configured(optional-older "first: 0. sconce: LibTorch 2.13.0 is required"
                  "second: 0. sconce: LibTorch 2.13.0 is required")
use("${WORK}/none" ${optional} -DTorch_DIR=${WORK}/nowhere)
expect_configured(optional-misspelt "first: 0. sconce: Torch_DIR is not a LibTorch")
file(APPEND "${WORK}/fitting/torch/share/cmake/Torch/TorchConfig.cmake"
     "add_library(torch_cuda INTERFACE IMPORTED)\n")
use("${WORK}/fitting" ${optional})
expect_configured(optional-kind
  "first: 0. sconce: the installed sconce was built with a different kind of LibTorch (CUDA: OFF)"
  "second: 0. sconce: the installed sconce was built with a different kind of LibTorch (CUDA: OFF)")
use("${WORK}/fitting" -DHOW=REQUIRED)
expect_stop(kind-of-python-required "was built with a different kind of LibTorch (CUDA: OFF)"
            "Found: ${WORK}/fitting/torch (CUDA: ON)")

# The path of LibTorch is not recorded if the option is off, nor by default if sconce is a subdirectory of a project.
make_torch("${torch}" 2.13.0)
file(WRITE "${WORK}/parent/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)\nset(SCONCE_INSTALL ON)
set(BUILD_SHARED_LIBS ON)\nset(CMAKE_CXX_VISIBILITY_PRESET hidden)\nset(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
add_subdirectory(\"${SOURCE}\" sconce)\n")
set(off -DSCONCE_INSTALL_TORCH_FALLBACK=OFF)
set(sconce "${SOURCE}")
foreach(name IN ITEMS off parent)
  if(name STREQUAL "parent")
    set(SOURCE "${WORK}/parent")
    set(off "")
  endif()
  configure(build-${name} "-DTorch_DIR=${torch}/share/cmake/Torch" ${off})
  expect_configured(build-${name} "LibTorch 2.13.0, CPU")
  file(GLOB_RECURSE configs "${WORK}/build-${name}/sconce-config.cmake")
  list(FILTER configs INCLUDE REGEX "/installed/") # not the build folder's own
  file(READ "${configs}" text)
  string(FIND "${text}" "${torch}" place)
  if(NOT place EQUAL -1)
    message(FATAL_ERROR "${name}: expected no folder of this machine in ${configs}")
  endif()
endforeach()

# Sets <out> to the run paths of a configured build's shared libraries after they are installed.
function(installed_run_paths out build)
  file(STRINGS "${build}/cmake_install.cmake" lines REGEX "^ +RPATH \"")
  list(LENGTH lines count)
  math(EXPR others "${count} / 2 - 1") # a library has two lines: one for its name with the version, and one for the link
  if(NOT others EQUAL layer_count)
    message(FATAL_ERROR "${build}: expected run paths of the core and of ${layers}, got: ${lines}")
  endif()
  list(TRANSFORM lines REPLACE "^ +RPATH \"(.*)\".*" "\\1")
  list(REMOVE_DUPLICATES lines)
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# Shared libraries find each other and LibTorch, if it is recorded. All their symbols are visible, although the parent
# hides its own.
installed_run_paths(paths "${WORK}/build-parent/sconce")
if(NOT paths STREQUAL "\\$ORIGIN")
  message(FATAL_ERROR "parent: expected the run path $ORIGIN, got ${paths}")
endif()
file(STRINGS "${WORK}/build-parent/build.ninja" hidden REGEX "FLAGS = .*(visibility=hidden|inlines-hidden)")
if(hidden)
  message(FATAL_ERROR "parent: expected visible symbols, got ${hidden}")
endif()
set(SOURCE "${sconce}")
configure(build-off -DSCONCE_INSTALL_TORCH_FALLBACK=ON -DBUILD_SHARED_LIBS=ON)
expect_configured(shared "LibTorch 2.13.0, CPU")
installed_run_paths(paths "${WORK}/build-off")
if(NOT paths STREQUAL "\\$ORIGIN:${torch}/lib")
  message(FATAL_ERROR "shared: expected the run path $ORIGIN:${torch}/lib, got ${paths}")
endif()
file(REMOVE_RECURSE "${WORK}")
