# Tests how the configure step installs PyTorch's CPU wheel, from local indexes of small stand-in wheels.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DDEPS=<SCONCE_DEPS_DIR for libraries that are not installed>
#         -P torch_cpu_test.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/configure.cmake")

execute_process(COMMAND c++ -print-multiarch OUTPUT_VARIABLE architecture OUTPUT_STRIP_TRAILING_WHITESPACE)
if(EXISTS "/usr/lib/${architecture}/cmake/Torch/TorchConfig.cmake")
  message("skipped: this machine's /usr has a LibTorch, which would be used before the stand-ins for wheels")
  return()
endif()

# Fails if the last configure run printed one of the given texts.
macro(expect_silence name)
  foreach(part ${ARGN})
    string(FIND "${output}" "${part}" place)
    if(NOT place EQUAL -1)
      message(FATAL_ERROR "${name}: '${part}' is in the output:\n${output}")
    endif()
  endforeach()
endmacro()

# Writes a stand-in for torch's Python package. Its LibTorch package includes Caffe2's package, as in upstream.
function(write_torch folder variant)
  set(cuda "None")
  set(target "")
  if(variant STREQUAL "cuda")
    set(cuda "'13.2'")
    set(target "add_library(torch_cuda INTERFACE IMPORTED)\n")
  endif()
  file(WRITE "${folder}/__init__.py" "")
  file(WRITE "${folder}/version.py" "cuda: Optional[str] = ${cuda}\n")
  file(WRITE "${folder}/share/cmake/Torch/TorchConfigVersion.cmake"
       "set(PACKAGE_VERSION 2.15.0)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  file(WRITE "${folder}/share/cmake/Torch/TorchConfig.cmake"
       "include(CMakeFindDependencyMacro)\n"
       "find_dependency(Caffe2 PATHS \${CMAKE_CURRENT_LIST_DIR}/../Caffe2)\nset(Torch_FOUND TRUE)\n")
  file(WRITE "${folder}/share/cmake/Caffe2/Caffe2Config.cmake"
       "add_library(torch_library INTERFACE IMPORTED)\n${target}")
endfunction()

# Adds a wheel of the package <name> with the files of <content> to an index. Further arguments are lines of its
# metadata.
function(add_wheel index name version content)
  set(info "${name}-${version}.dist-info")
  set(wheel "${name}-${version}-py3-none-any.whl")
  file(WRITE "${content}/${name}/__init__.py" "")
  list(JOIN ARGN "\n" lines)
  file(WRITE "${content}/${info}/METADATA"
       "Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n${lines}\n")
  file(WRITE "${content}/${info}/WHEEL"
       "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
  file(GLOB_RECURSE files RELATIVE "${content}" "${content}/*")
  list(TRANSFORM files APPEND ",,\n")
  list(JOIN files "" record)
  file(WRITE "${content}/${info}/RECORD" "${record}${info}/RECORD,,\n")
  file(MAKE_DIRECTORY "${index}/${name}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E tar cf "${index}/${name}/${wheel}" --format=zip ${name} ${info}
    WORKING_DIRECTORY "${content}" COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "+" "%2B" link "${wheel}") # as in PyTorch's index
  file(APPEND "${index}/${name}/index.html" "<a href=\"${link}\">${wheel}</a>\n")
endfunction()

# pip's default index has no CPU wheel of torch. PyTorch's index lacks safetensors and torch's dependencies, and it has
# a numpy that must not be installed.
write_torch("${WORK}/content/cuda/torch" cuda)
write_torch("${WORK}/content/cpu/torch" cpu)
add_wheel("${WORK}/pip-index" torch 2.15.0 "${WORK}/content/cuda" "Requires-Dist: filelock")
add_wheel("${WORK}/torch-index" torch 2.15.0+cpu "${WORK}/content/cpu" "Requires-Dist: filelock")
foreach(name filelock numpy safetensors)
  add_wheel("${WORK}/pip-index" ${name} 1.0 "${WORK}/content/${name}")
endforeach()
add_wheel("${WORK}/torch-index" numpy 99.0 "${WORK}/content/other-numpy")
foreach(name PIP_NO_INDEX PIP_EXTRA_INDEX_URL PIP_QUIET)
  unset(ENV{${name}})
endforeach()
set(ENV{PIP_CONFIG_FILE} /dev/null)
set(ENV{PIP_FIND_LINKS} "")
set(ENV{PIP_INDEX_URL} "file://${WORK}/pip-index")

# Creating a virtual environment takes seconds, so one is created once and then copied.
execute_process(COMMAND "${python3}" -m venv "${WORK}/venv" COMMAND_ERROR_IS_FATAL ANY)
set(make_venv "case \"$*\" in '-m venv '*) exec cp -al '${WORK}/venv' \"$3\";; esac")
make_python("${WORK}/python" "${make_venv}")
make_python("${WORK}/python-with-cuda" "${make_venv}\nexport PYTHONPATH='${WORK}/content/cuda'")
make_python("${WORK}/python-with-cpu" "${make_venv}\nexport PYTHONPATH='${WORK}/content/cpu'")

set(setup "${WORK}/setup")
set(main -DPython3_EXECUTABLE=${WORK}/python -DSCONCE_SETUP_DIR=${setup})
set(index "-DSCONCE_TORCH_INDEX_URL=file://${WORK}/torch-index")
set(cpu_line "-- sconce: LibTorch 2.15.0, CPU (pinned wheel: ${setup}/torch-2.15.0-cpu/")
set(cuda_line "-- sconce: LibTorch 2.15.0, CUDA (pinned wheel: ${setup}/torch-2.15.0/")

configure(main ${main} -DSCONCE_TORCH_VARIANT=gpu)
expect_stop(unknown-variant "SCONCE_TORCH_VARIANT is 'gpu'" "cpu " "cuda ")
if(EXISTS "${setup}")
  message(FATAL_ERROR "unknown-variant: the set-up began despite the error")
endif()

configure(main ${main} ${index} -DSCONCE_TORCH_VARIANT=)
expect_stop(index-without-variant "SCONCE_TORCH_VARIANT is not cpu" "-DSCONCE_TORCH_VARIANT=cpu"
            "-USCONCE_TORCH_INDEX_URL")

configure(main ${main} -DSCONCE_TORCH_VARIANT=cpu -DSCONCE_TORCH_INDEX_URL=)
expect_stop(not-in-pips-index "installing torch 2.15.0+cpu with pip failed" "torch==2.15.0+cpu"
            "Looking in indexes: file://${WORK}/pip-index" "the active Python, the distribution."
            "apt install libtorch-dev      if the distribution has LibTorch 2.11.0 or newer"
            "-DSCONCE_TORCH_INDEX_URL=<index>")

configure(main ${main} -DSCONCE_TORCH_VARIANT=cpu
          "-DSCONCE_TORCH_INDEX_URL=file://${WORK}/other-index")
expect_stop(not-in-the-index "installing torch 2.15.0+cpu from SCONCE_TORCH_INDEX_URL failed"
            "torch==2.15.0+cpu" "Looking in indexes: file://${WORK}/other-index")
file(GLOB taken "${setup}/torch-*/complete")
if(taken)
  message(FATAL_ERROR "not-in-the-index: an incomplete environment counts as complete")
endif()

configure(main ${main} ${index} -DSCONCE_TORCH_VARIANT=cpu)
expect_configured(cpu "installing LibTorch 2.15.0+cpu into ${setup}/torch-2.15.0-cpu " "${cpu_line}")
expect_silence(cpu "CUDA")
file(GLOB installed "${setup}/torch-*/lib/python*/site-packages/*.dist-info")
list(TRANSFORM installed REPLACE ".*/" "")
list(FILTER installed EXCLUDE REGEX "^(pip|setuptools)-")
set(expected filelock-1.0 numpy-1.0 safetensors-1.0 torch-2.15.0+cpu)
list(TRANSFORM expected APPEND ".dist-info")
if(NOT installed STREQUAL expected)
  message(FATAL_ERROR "cpu: expected only torch from its index, installed: ${installed}")
endif()

configure(main ${main} -DSCONCE_TORCH_VARIANT= -DSCONCE_TORCH_INDEX_URL=)
expect_configured(switched-to-none "installing LibTorch 2.15.0 into ${setup}/torch-2.15.0 " "${cuda_line}")

# From here on, every command that accesses an index fails.
file(RENAME "${WORK}/torch-index" "${WORK}/torch-index-away")
file(RENAME "${WORK}/pip-index" "${WORK}/pip-index-away")
file(GLOB_RECURSE before "${setup}/*")

configure(main ${main})
expect_configured(repeated "${cuda_line}")
configure(main ${main} ${index} -DSCONCE_TORCH_VARIANT=cpu)
expect_configured(switched-to-cpu "${cpu_line}")
expect_silence(switched-to-cpu "CUDA" "installing")
configure(main ${main})
expect_configured(repeated-with-cpu "${cpu_line}")
expect_silence(repeated-with-cpu "CUDA" "installing")
configure(main ${main} -DSCONCE_TORCH_VARIANT=cuda)
expect_configured(switched-to-cuda "${cuda_line}")

# Python's torch is used if it is the requested variant. A torch that the user specifies is always used.
set(other -DPython3_EXECUTABLE=${WORK}/python-with-cuda -DSCONCE_SETUP_DIR=${setup})
configure(other ${other} -DSCONCE_TORCH_VARIANT=cpu)
expect_configured(passed-over "Python's torch 2.15.0 for cuda is not the requested one" "${cpu_line}")
configure(other ${other} -DSCONCE_TORCH_VARIANT=cuda)
expect_configured(pythons "LibTorch 2.15.0, CUDA (Python's torch: ${WORK}/content/cuda/torch)")
configure(other ${other} -DPython3_EXECUTABLE=${WORK}/python-with-cpu -DSCONCE_TORCH_VARIANT=cpu)
expect_configured(pythons "LibTorch 2.15.0, CPU (Python's torch: ${WORK}/content/cpu/torch)")
configure(other ${other} -DTorch_DIR=${WORK}/content/cuda/torch/share/cmake/Torch)
expect_configured(named "CUDA (named by Torch_DIR or CMAKE_PREFIX_PATH: ${WORK}/content/cuda/torch)")

# A distribution's LibTorch comes after Python's torch and before the wheel, and only for the variant cpu. The first
# include of a project adds the folder of stand-ins to the system's folders.
set(system "${WORK}/system/usr")
file(WRITE "${WORK}/add_system.cmake" "list(PREPEND CMAKE_SYSTEM_PREFIX_PATH \"${WORK}/empty\" \"${system}\")\n")
set(distribution ${main} -DCMAKE_PROJECT_sconce_INCLUDE=${WORK}/add_system.cmake)
set(cpu ${index} -DSCONCE_TORCH_VARIANT=cpu)
foreach(version IN ITEMS 1.13.0 2.14.1)
  make_torch("${WORK}/torch-${version}" ${version})
endforeach()
function(install_torch version) # like Debian's libtorch-dev
  file(REMOVE_RECURSE "${system}")
  file(COPY "${WORK}/torch-${version}/share/cmake" DESTINATION "${system}/lib/${architecture}")
endfunction()
install_torch(1.13.0)
configure(distribution ${distribution} ${cpu})
expect_configured(too-old "the distribution's LibTorch 1.13.0 for cpu is skipped, because 2.11.0 or newer"
                  "${system}/lib/${architecture}/cmake/Torch" "${cpu_line}")
expect_silence(too-old "CUDA" "installing")
install_torch(2.14.1)
set(distribution_line "-- sconce: LibTorch 2.14.1, CPU (the distribution's: ${system})")
configure(distribution ${distribution} ${cpu} -UTorch_DIR)
expect_configured(distributions "${distribution_line}")
configure(distribution ${distribution})
expect_configured(distributions-repeated "${distribution_line}")
configure(distribution ${distribution} -DSCONCE_TORCH_VARIANT= -USCONCE_TORCH_INDEX_URL)
expect_configured(distributions-for-cpu-only "${cuda_line}")
configure(distribution ${distribution} ${cpu} -DPython3_EXECUTABLE=${WORK}/python-with-cpu)
expect_configured(pythons-before-distributions "CPU (Python's torch: ${WORK}/content/cpu/torch)")
configure(distribution ${distribution} -DCMAKE_PREFIX_PATH=${system})
expect_configured(distributions-named "LibTorch 2.14.1, CPU (named by Torch_DIR or CMAKE_PREFIX_PATH: ${system})")
file(WRITE "${system}/lib/${architecture}/libtorch_cuda.so" "")
configure(distribution ${distribution} -UCMAKE_PREFIX_PATH -UTorch_DIR)
expect_configured(distributions-with-cuda "LibTorch 2.14.1 for cuda is skipped" "${cpu_line}")

file(GLOB_RECURSE after "${setup}/*")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "a configure run that needed nothing new changed ${setup}")
endif()

# If pip's default index has only CPU wheels, the wheel installed for "cuda" is rejected.
file(GLOB file "${setup}/torch-2.15.0/lib/python*/site-packages/torch/version.py")
file(WRITE "${file}" "cuda: Optional[str] = None\n")
configure(main ${main} -UTorch_DIR -DSCONCE_TORCH_VARIANT=cuda)
expect_stop(not-for-cuda "pip installed a torch 2.15.0 for cpu, not for cuda")
file(REMOVE_RECURSE "${WORK}")
