# How the configure step meets a LibTorch that is wrong or missing.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DDEPS=<SCONCE_DEPS_DIR for what is not installed>
#         -P torch_test.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/configure.cmake")

# A stand-in for LibTorch that has a version and a target, and nothing else.
function(make_torch folder version)
  file(WRITE "${folder}/share/cmake/Torch/TorchConfigVersion.cmake"
       "set(PACKAGE_VERSION ${version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  file(WRITE "${folder}/share/cmake/Torch/TorchConfig.cmake"
       "add_library(torch_library INTERFACE IMPORTED)\nset(Torch_FOUND TRUE)\n")
endfunction()

make_torch("${WORK}/torch-old" 2.4.0)
configure(old -DTorch_DIR=${WORK}/torch-old/share/cmake/Torch)
expect_stop(old "LibTorch 2.4.0 is too old" "2.11.0 to 2.15.0 are supported"
            "${WORK}/torch-old" "pip install torch==" "Torch_DIR=")

make_torch("${WORK}/torch-new" 2.99.0)
configure(new -DTorch_DIR=${WORK}/torch-new/share/cmake/Torch)
expect_configured(new "LibTorch 2.99.0 is newer than 2.15.0")

configure(misspelt -DTorch_DIR=${WORK}/nowhere)
expect_stop(misspelt "Torch_DIR names no LibTorch: ${WORK}/nowhere" "<libtorch>/share/cmake/Torch")

make_torch("${WORK}/torch-named" 2.12.0)
configure(named -DCMAKE_PREFIX_PATH=${WORK}/torch-named)
expect_configured(named
  "-- sconce: LibTorch 2.12.0, CPU (named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/torch-named)")

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
