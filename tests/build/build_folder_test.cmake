# Builds the project in apps/template against sconce's build folder without installing anything from it.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DPYTHON=<a Python> -DBUILD=<the build folder>
#         [-DOPTIONS=<an argument of cmake>] -P build_folder_test.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

set(project "${WORK}/mein projekt ä")
file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/apps/template/" DESTINATION "${project}")
set(configure "${CMAKE_COMMAND}" -S "${project}" -B "${project}/build" -G Ninja ${OPTIONS})

file(STRINGS "${project}/CMakeLists.txt" lines)
list(LENGTH lines count)
if(NOT count EQUAL 7)
  message(FATAL_ERROR "apps/template/CMakeLists.txt: expected 7 lines, got ${count}")
endif()

# Without a build folder, and with one that is configured but empty, the output is one line that says which command to
# run.
expect_failure("\n *sconce: not found[.] Run [^\n]*cmake --workflow --preset demo [^\n]*\n" ${configure})
expect_failure("\n *sconce: not found[.]" ${configure} "-Dsconce_DIR=${WORK}/no/build/default")
file(GLOB package "${BUILD}/sconce-*.cmake")
foreach(file IN LISTS package)
  cmake_path(GET file FILENAME name)
  file(READ "${file}" text)
  string(REPLACE "${BUILD}/src" "${WORK}/empty/src" text "${text}")
  file(WRITE "${WORK}/empty/${name}" "${text}")
endforeach()
expect_failure("\n *sconce: [^\n]*libsconce_core[^\n]* is not built yet[.] Run: [^\n]*\n" ${configure} "-Dsconce_DIR=${WORK}/empty")

# The warnings at -O0 differ from those at -O3, the template's default build type.
run("configuring" ${configure} "-Dsconce_DIR=${BUILD}" -DCMAKE_BUILD_TYPE=None)
expect("sconce: LibTorch [^\n]*the one that sconce was built with")
build_template("${project}")
file(GLOB_RECURSE headers "${project}/build/cmake_pch.hxx.gch" "${project}/build/cmake_pch.hxx.pch")
if(NOT headers)
  message(FATAL_ERROR "expected a precompiled header in ${project}/build, got none")
endif()

run("configuring by the prefix" ${configure} -B "${WORK}/by-prefix" "-DCMAKE_PREFIX_PATH=${BUILD}")
load_cache("${WORK}/by-prefix" READ_WITH_PREFIX "" CMAKE_BUILD_TYPE)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  message(FATAL_ERROR "expected the build type Release, got '${CMAKE_BUILD_TYPE}'")
endif()
file(REMOVE_RECURSE "${WORK}")
