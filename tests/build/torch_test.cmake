# Tests how the configure step handles an unsuitable or missing LibTorch.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DDEPS=<SCONCE_DEPS_DIR for libraries that are not installed>
#         -DCXX=<the compiler> -P torch_test.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/configure.cmake")

make_torch("${WORK}/torch-old" 2.4.0)
configure(old -DTorch_DIR=${WORK}/torch-old/share/cmake/Torch)
expect_stop(old "LibTorch 2.4.0 is too old" "2.11.0 to 2.15.0 are supported"
            "${WORK}/torch-old" "pip install torch==" "Torch_DIR=")

make_torch("${WORK}/torch-new" 2.99.0)
configure(new -DTorch_DIR=${WORK}/torch-new/share/cmake/Torch)
expect_configured(new "LibTorch 2.99.0 is newer than 2.15.0")

configure(misspelt -DTorch_DIR=${WORK}/nowhere)
expect_stop(misspelt "Torch_DIR is not a LibTorch: ${WORK}/nowhere" "<libtorch>/share/cmake/Torch")

make_torch("${WORK}/torch-named" 2.12.0)
configure(named -DCMAKE_PREFIX_PATH=${WORK}/torch-named)
expect_configured(named
  "-- sconce: LibTorch 2.12.0, CPU (named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/torch-named)")

# A LibTorch that is added to CMAKE_PREFIX_PATH later replaces a LibTorch that sconce chose or found there, but not a
# LibTorch from Torch_DIR.
make_torch("${WORK}/torch-of-python/torch" 2.13.0)
make_torch("${WORK}/torch-later" 2.14.0)
make_python("${WORK}/python-with-torch" "export PYTHONPATH='${WORK}/torch-of-python'")
configure(later -DPython3_EXECUTABLE=${WORK}/python-with-torch)
expect_configured(chosen "LibTorch 2.13.0, CPU (Python's torch: ${WORK}/torch-of-python/torch)")
configure(later -DCMAKE_PREFIX_PATH=${WORK}/torch-later)
expect_configured(named-later "LibTorch 2.14.0, CPU (named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/torch-later)")
configure(later -DCMAKE_PREFIX_PATH=${WORK}/torch-named)
expect_configured(other-named "LibTorch 2.12.0, CPU (named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/torch-named)")
configure(later -DCMAKE_PREFIX_PATH=${WORK}/nowhere)
expect_configured(no-longer-named "LibTorch 2.13.0, CPU (Python's torch: ${WORK}/torch-of-python/torch)")
configure(later -DTorch_DIR=${WORK}/torch-later/share/cmake/Torch)
expect_configured(named-by-folder "LibTorch 2.14.0")
configure(later -DCMAKE_PREFIX_PATH=${WORK}/torch-named)
expect_configured(folder-before-prefix "LibTorch 2.14.0")

# Its CUDA library depends on another library, which is deleted below, and on the driver's library, which may be
# missing.
make_torch("${WORK}/torch-cuda" 2.12.0)
file(APPEND "${WORK}/torch-cuda/share/cmake/Torch/TorchConfig.cmake"
     "add_library(torch_cuda INTERFACE IMPORTED)\n")
file(MAKE_DIRECTORY "${WORK}/torch-cuda/lib")
foreach(name IN ITEMS cublas_of_test cuda torch_cuda)
  set(links "")
  if(name STREQUAL "torch_cuda")
    set(links "-Wl,--no-as-needed" "-L${WORK}/torch-cuda/lib" -lcublas_of_test -lcuda "-Wl,-rpath,$ORIGIN")
  endif()
  execute_process(COMMAND "${CXX}" -shared -x c++ /dev/null -x none ${links}
                          "-Wl,-soname,lib${name}.so" -o "${WORK}/torch-cuda/lib/lib${name}.so"
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# Stand-ins for the headers in the CUDA and NCCL wheels. With them, sconce-simgpu can be built.
file(WRITE "${WORK}/torch-cuda/version.py" "cuda: Optional[str] = '13.2'\n")
set(headers "${WORK}/nvidia/cu13/include")
file(WRITE "${headers}/cuda.h" "#define CUDA_VERSION 13020\n")
foreach(header IN ITEMS cuda_runtime_api.h crt/host_defines.h cublas_v2.h cusparse.h cusolverDn.h nccl.h)
  file(WRITE "${headers}/${header}" "")
endforeach()
file(WRITE "${WORK}/show.cmake" [[cmake_language(DEFER CALL message STATUS "simgpu: ${SCONCE_BUILD_SIMGPU}")]])
configure(cuda -DTorch_DIR=${WORK}/torch-cuda/share/cmake/Torch -DSCONCE_CUDA=OFF
          -DCMAKE_PROJECT_sconce_INCLUDE=${WORK}/show.cmake)
expect_configured(cuda "LibTorch 2.12.0, CUDA" "simgpu: OFF")
if(output MATCHES "CUDA libraries that are missing")
  message(FATAL_ERROR "cuda: warned of libraries that are there\n${output}")
endif()
file(REMOVE "${WORK}/torch-cuda/lib/libcublas_of_test.so" "${WORK}/torch-cuda/lib/libcuda.so")
configure(no-cuda-libraries -DTorch_DIR=${WORK}/torch-cuda/share/cmake/Torch -DSCONCE_CUDA=OFF)
expect_configured(no-cuda-libraries "the LibTorch in ${WORK}/torch-cuda needs CUDA libraries"
                  "that are missing: libcublas_of_test.so" "pip install torch==2.12.0")

# The default value of SCONCE_BUILD_SIMGPU depends on the other options of the build folder. The user's choice takes
# precedence if it is possible.
configure(cuda -DSCONCE_CUDA=ON)
expect_configured(cuda-switched-on "simgpu: ON")
configure(cuda -DSCONCE_CUDA=OFF)
expect_configured(cuda-switched-off "simgpu: OFF")
configure(cuda -DSCONCE_BUILD_SIMGPU=OFF)
configure(cuda -DSCONCE_CUDA=ON)
expect_configured(simgpu-switched-off "simgpu: OFF")
configure(cuda -DSCONCE_BUILD_SIMGPU=ON)
expect_configured(simgpu-switched-on "simgpu: ON")

make_python("${WORK}/python-no-venv" [[case "$*" in "-m venv"*) echo "Error: ensurepip is not available" >&2; exit 1;; esac]])
configure(no-venv -DPython3_EXECUTABLE=${WORK}/python-no-venv)
expect_stop(no-venv "creating a virtual environment with ${WORK}/python-no-venv failed"
            "ensurepip is not available" "apt install python3-venv")

# pip fails immediately, as on a machine without a network.
set(ENV{PIP_NO_INDEX} 1)
set(ENV{PIP_FIND_LINKS} "")
make_python("${WORK}/python-no-network" "")
configure(no-network -DPython3_EXECUTABLE=${WORK}/python-no-network)
expect_stop(no-network "installing torch 2.15.0 with pip failed" "Could not find a version"
            "Already looked in:" "Torch_DIR=")
file(GLOB taken "${WORK}/no-network-setup/torch-*/complete")
if(taken)
  message(FATAL_ERROR "no-network: an incomplete environment counts as complete")
endif()
file(REMOVE_RECURSE "${WORK}")
