# Builds the project in apps/template against the source wheel that pip makes from a copy of sconce's folder.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DPYTHON=<a Python that has torch> -P wheel_test.cmake
cmake_minimum_required(VERSION 3.25)

set(project "${WORK}/mein projekt ä")
set(env "${WORK}/env/bin/python") # a separate Python without torch
file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/apps/template/" DESTINATION "${project}")

# Runs a command with PYTHON first on the PATH. Stops if it fails. Sets output to what it printed.
function(run what)
  cmake_path(GET PYTHON PARENT_PATH bin)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${bin}:$ENV{PATH}" ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed AND output MATCHES "No matching distribution found for hatchling")
    message(STATUS "skipped: pip finds no hatchling, which makes the wheel")
    set(skipped ON PARENT_SCOPE)
  elseif(failed)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  string(STRIP "${output}" output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "expected '${pattern}', got:\n${output}")
  endif()
endfunction()

run("making an environment" "${PYTHON}" -m venv "${WORK}/env")
run("installing" "${env}" -m pip install --disable-pip-version-check --no-input "${SOURCE}")
if(skipped)
  return()
endif()

file(STRINGS "${SOURCE}/include/sconce/version.hpp" lines REGEX "define SCONCE_VERSION_[A-Z]+ [0-9]+")
string(REGEX REPLACE "[^;]*VERSION_[A-Z]+ ([0-9]+)" "\\1" numbers "${lines}")
list(JOIN numbers "." version)
run("asking for the version" "${env}" -m sconce --version)
expect("^${version}$")
run("asking for the folder" "${env}" -m sconce --cmake-dir)
expect("^${WORK}/env/lib/python[0-9.]+/site-packages/sconce/cmake$")

# GCC's warnings at -O0 differ from those at -O3, the template's own build type.
set(configure "${CMAKE_COMMAND}" -S "${project}" -B "${project}/build" -G Ninja "-Dsconce_DIR=${output}")
run("configuring" ${configure} -DCMAKE_BUILD_TYPE=None)
expect("sconce: LibTorch [^\n]*Python's torch")
run("building" "${CMAKE_COMMAND}" --build "${project}/build")
if(output MATCHES "warning:")
  message(FATAL_ERROR "expected no warning, got:\n${output}")
endif()
run("running" "${project}/build/train")
expect("epoch 10/10: loss [0-9.]+, train acc (1|0[.]9)")

# A component that the wheel lacks is named in the error.
file(READ "${project}/CMakeLists.txt" lists)
foreach(asked IN ITEMS "sconce 9.1|9[.]1" "sconce 0.2 COMPONENTS cores|no component 'cores'")
  string(REGEX REPLACE "[|].*" "" package "${asked}")
  string(REGEX REPLACE ".*[|]" "" pattern "${asked}")
  string(REPLACE "sconce 0.2" "${package}" other "${lists}")
  file(WRITE "${project}/CMakeLists.txt" "${other}")
  execute_process(COMMAND ${configure} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE output)
  if(NOT failed)
    message(FATAL_ERROR "configuring with ${package}: expected an error")
  endif()
  expect("${pattern}")
endforeach()
file(REMOVE_RECURSE "${WORK}")
