# Builds the project in apps/template against the source wheel that pip builds from a copy of sconce's folder.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DPYTHON=<a Python that has torch> -P wheel_test.cmake
cmake_minimum_required(VERSION 3.25)

set(project "${WORK}/mein projekt ä")
set(env "${WORK}/env/bin/python") # a separate Python without torch
file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/apps/template/" DESTINATION "${project}")

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

run("making an environment" "${PYTHON}" -m venv "${WORK}/env")
make_wheel_or_skip("installing" "${env}" -m pip install --disable-pip-version-check --no-input "${SOURCE}")

file(STRINGS "${SOURCE}/include/sconce/version.hpp" lines REGEX "define SCONCE_VERSION_[A-Z]+ [0-9]+")
string(REGEX REPLACE "[^;]*VERSION_[A-Z]+ ([0-9]+)" "\\1" numbers "${lines}")
list(JOIN numbers "." version)
file(STRINGS "${SOURCE}/include/sconce/version.hpp" suffix REGEX "SUFFIX \"dev\"")
if(suffix)
  string(APPEND version ".dev0")
endif()
run("asking for the version" "${env}" -m sconce --version)
expect("^${version}\n$")
run("asking for the folder" "${env}" -m sconce --cmake-dir)
expect("^${WORK}/env/lib/python[0-9.]+/site-packages/sconce/cmake\n$")
string(STRIP "${output}" folder)

# The wheel does not depend on PyTorch, but its command sconce-export does.
run("asking sconce-export for help" "${WORK}/env/bin/sconce-export" --help)
expect("^usage: sconce-export ")
expect_failure("^sconce-export: PyTorch is missing. To install: ${env} -m pip install torch\n$"
               "${WORK}/env/bin/sconce-export" net.safetensors --check)
run("writing a program" "${PYTHON}" -c "import pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, '${SOURCE}/tests/program')
import programs
programs.mlp_with_example()[0].save(pathlib.Path('${WORK}/net.safetensors'))")
cmake_path(SET site NORMALIZE "${folder}/../..")
run("checking it with the wheel's module" "${CMAKE_COMMAND}" -E env "PYTHONPATH=${site}"
    "${PYTHON}" -m sconce_cpp "${WORK}/net.safetensors" --check)
expect("^${WORK}/net.safetensors: largest difference 0, at most 1e-05 expected\n$")

# GCC's warnings at -O0 differ from its warnings at -O3, the template's own build type. One build does not need a
# precompiled header; build_folder_test.cmake uses one.
set(configure "${CMAKE_COMMAND}" -S "${project}" -B "${project}/build" -G Ninja "-Dsconce_DIR=${folder}")
run("configuring" ${configure} -DCMAKE_BUILD_TYPE=None -DSCONCE_CUDA=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON)
expect("sconce: LibTorch [^\n]*Python's torch")
build_template("${project}")

# The error names the component that is missing from the wheel.
file(READ "${project}/CMakeLists.txt" lists)
foreach(asked IN ITEMS "sconce 9.1|9[.]1" "sconce COMPONENTS cores|no component 'cores'")
  string(REGEX REPLACE "[|].*" "" package "${asked}")
  string(REGEX REPLACE ".*[|]" "" pattern "${asked}")
  string(REPLACE "(sconce" "(${package}" other "${lists}")
  file(WRITE "${project}/CMakeLists.txt" "${other}")
  expect_failure("${pattern}" ${configure})
endforeach()

# The sources need a C++20 compiler.
set(fresh ${configure} -B "${WORK}/fresh")
file(WRITE "${project}/CMakeLists.txt" "${lists}")
expect_failure("CMAKE_CXX_COMPILER:[ \n]+/no/c[+][+][ \n]" ${fresh} -DCMAKE_CXX_COMPILER=/no/c++)
file(REMOVE_RECURSE "${WORK}/fresh")
foreach(case IN ITEMS "LANGUAGES NONE)|has[ \n]+no[ \n]+C[+][+][ \n]+compiler:"
                      "LANGUAGES CXX)\nset(CMAKE_CXX_COMPILE_FEATURES cxx_std_17)|requires[ \n]+a[ \n]+C[+][+]20[ \n]+compiler,")
  string(REGEX REPLACE "[|].*" "" languages "${case}")
  string(REGEX REPLACE ".*[|]" "" pattern "${case}")
  string(REPLACE "LANGUAGES CXX)" "${languages}" other "${lists}")
  file(WRITE "${project}/CMakeLists.txt" "${other}")
  expect_failure("${pattern}" ${fresh})
endforeach()
file(REMOVE_RECURSE "${WORK}")
