# Tests all ways in which cmake/SconceDependencies.cmake finds a dependency:
#   cmake -DSOURCE=<the repository> -DWORK=<a folder to fill> [-DPARTS=<some of the parts>] -P dependencies_test.cmake
# The parts prefix, sources, git, and failure do not need a network and take seconds. The part packages downloads about
# 10 MB of indexes and 3 MB of packages. If it cannot run, it prints a line with "skipped:", so run it as a separate
# test. The parts without network use stubs: minimal stand-ins with the real names of headers, targets, and packages.
cmake_minimum_required(VERSION 3.25)
if(NOT PARTS)
  set(PARTS prefix sources git failure packages)
endif()
get_filename_component(SOURCE "${SOURCE}" ABSOLUTE)
get_filename_component(WORK "${WORK}" ABSOLUTE)
set(names Catch2 CLI11 httplib nlohmann_json ZLIB)
set(room "${WORK}/a b ä")  # all paths contain spaces and a letter that is not ASCII
file(REMOVE_RECURSE "${room}" "${WORK}/path-with-apt")
file(MAKE_DIRECTORY "${room}")

set(configure_command ${CMAKE_COMMAND} -S "${SOURCE}/tests/build/dependencies" --no-warn-unused-cli
                      "-DSCONCE_SOURCE=${SOURCE}" "-DSCONCE_SETUP_DIR=${room}/setup")
find_program(ninja ninja NO_CACHE)
if(ninja)
  list(APPEND configure_command -G Ninja)
endif()

# Fills the folder with links to only these programs. As PATH, the folder hides all other programs, and also the
# installed packages, because CMake derives search paths from the bin folders in PATH.
function(make_path folder)
  file(MAKE_DIRECTORY "${folder}")
  foreach(program IN ITEMS cmake ninja make c++ g++ cc gcc ar ranlib nm ld as strip objcopy objdump readelf sh uname)
    find_program(found ${program} NO_CACHE)
    if(found)
      file(CREATE_LINK "${found}" "${folder}/${program}" SYMBOLIC)
    endif()
    unset(found)
  endforeach()
endfunction()

# Runs a command under the given PATH. Sets code to its exit code and output to everything it printed.
function(run path)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "PATH=${path}" ${ARGN}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  return(PROPAGATE code output)
endfunction()

# Configures tests/build/dependencies in the build folder. Sets code, output, and found, the lines "sconce: ...".
function(configure path build)
  run("${path}" ${configure_command} ${ARGN} -B "${build}")
  string(REGEX MATCHALL "-- sconce: [^\n]*" found "${output}")
  list(JOIN found "\n" found)
  return(PROPAGATE code output found)
endfunction()

# Stops unless the last command succeeded.
macro(expect_success what)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
endmacro()

# Stops unless the last configure succeeded and printed exactly one line for each dependency, with the text in it.
function(expect_found what text)
  expect_success("${what}")
  foreach(name IN LISTS names)
    string(REGEX MATCHALL "sconce: ${name}[^\n]*" lines "${found}")
    list(LENGTH lines count)
    string(FIND "${lines}" "${text}" position)
    if(NOT count EQUAL 1 OR position EQUAL -1)
      message(FATAL_ERROR "${what}: expected one line with '${text}' for ${name}, got:\n${output}")
    endif()
  endforeach()
endfunction()

# Stops if the build folder's cache contains a failed search, or an unpacked package whose folder may be deleted.
function(expect_clean_cache build)
  list(JOIN names "|" pattern)
  file(STRINGS "${build}/CMakeCache.txt" entries REGEX "^(${pattern})_")
  if(NOT "${entries}" STREQUAL "")  # if(entries) is false for ...-NOTFOUND
    message(FATAL_ERROR "left in the cache: ${entries}")
  endif()
endfunction()

# Stops unless the build folder builds, passes its only test, and installs nothing.
function(expect_works what build)
  run("$ENV{PATH}" ${CMAKE_COMMAND} --build "${build}")
  expect_success("${what}: the build")
  run("$ENV{PATH}" ${CMAKE_CTEST_COMMAND} --test-dir "${build}" --no-tests=error)
  expect_success("${what}: the test")
  run("$ENV{PATH}" ${CMAKE_COMMAND} --install "${build}" --prefix "${build}/installed")
  expect_success("${what}: the installation")
  if(EXISTS "${build}/installed")
    message(FATAL_ERROR "${what}: a dependency installs files of its own")
  endif()
endfunction()

# Writes the stub of one dependency's headers.
function(write_headers name folder)
  if(name STREQUAL "Catch2")
    file(WRITE "${folder}/catch2/catch_test_macros.hpp"
         "#define TEST_CASE(name) int main()\n#define REQUIRE(x) if (!(x)) return 1\n")
  elseif(name STREQUAL "CLI11")
    file(WRITE "${folder}/CLI/CLI.hpp" "#include <string>\nnamespace CLI { struct App { std::string text;\n"
         "explicit App(std::string t) : text(t) {}\nstd::string get_description() { return text; } }; }\n")
  elseif(name STREQUAL "httplib")
    file(WRITE "${folder}/httplib.h" "namespace httplib { struct Server { bool is_valid() const { return true; } }; }\n")
  elseif(name STREQUAL "nlohmann_json")
    file(WRITE "${folder}/nlohmann/json.hpp"
         "namespace nlohmann { struct json { static bool accept(const char*) { return true; } }; }\n")
  else()
    file(WRITE "${folder}/zlib.h" "#define ZLIB_VERSION \"9.9.0\"\n"
         "inline const char* zlibVersion() { return ZLIB_VERSION; }\n")
  endif()
endfunction()

set(target_of_Catch2 Catch2::Catch2WithMain)
set(target_of_CLI11 CLI11::CLI11)
set(target_of_httplib httplib::httplib)
set(target_of_nlohmann_json nlohmann_json::nlohmann_json)
set(target_of_ZLIB ZLIB::ZLIB)
set(stub_of_catch_module
    "function(catch_discover_tests target)\n  add_test(NAME stub COMMAND \${target})\nendfunction()\n")

# Writes a prefix with stubs of all dependencies. Each stub has version 9.9 and the package files that find_package
# reads.
function(write_prefix prefix)
  foreach(name IN LISTS names)
    write_headers(${name} "${prefix}/include")
    set(package "${prefix}/lib/cmake/${name}/${name}Config")
    if(NOT name STREQUAL "ZLIB")
      file(WRITE "${package}.cmake" "add_library(${target_of_${name}} INTERFACE IMPORTED)\n"
           "target_include_directories(${target_of_${name}} INTERFACE\n  \"\${CMAKE_CURRENT_LIST_DIR}/../../../include\")\n")
      file(WRITE "${package}Version.cmake" "set(PACKAGE_VERSION 9.9)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
    endif()
  endforeach()
  file(WRITE "${prefix}/lib/cmake/Catch2/Catch.cmake" "${stub_of_catch_module}")
  file(WRITE "${prefix}/lib/libz.a" "!<arch>\n")  # an archive without members
endfunction()

# Writes the stub of a source tree. It stops if its own tests or installation are on. It contains a target that does not
# compile and an install rule, to check that only the dependency's target is built.
function(write_sources name folder)
  string(TOLOWER ${name} content)
  string(REGEX REPLACE "::.*" "" library "${target_of_${name}}")
  write_headers(${name} "${folder}")
  set(text "cmake_minimum_required(VERSION 3.10)\nproject(${name} VERSION 9.9 LANGUAGES NONE)\n"
           "message(STATUS \"the stub talks\")\n")
  foreach(switch IN ITEMS BUILD_TESTING CLI11_BUILD_TESTS HTTPLIB_INSTALL JSON_BuildTests)
    string(APPEND text "option(${switch} \"\" ON)\n" "if(${switch})\n  message(FATAL_ERROR \"${switch} is on\")\nendif()\n")
  endforeach()
  if(name STREQUAL "ZLIB")
    string(APPEND text "add_library(zlibstatic INTERFACE)\n")
  else()
    string(APPEND text "add_library(stub_${content} INTERFACE)\n"
           "add_library(${target_of_${name}} ALIAS stub_${content})\n"
           "target_include_directories(stub_${content} INTERFACE \"\${CMAKE_CURRENT_SOURCE_DIR}\")\n")
  endif()
  string(APPEND text "add_custom_target(never_${content} ALL COMMAND \${CMAKE_COMMAND} -E false)\n"
         "install(FILES CMakeLists.txt DESTINATION share/${content})\n")
  string(REPLACE ";" "" text "${text}")
  file(WRITE "${folder}/CMakeLists.txt" "${text}")
  file(WRITE "${folder}/extras/Catch.cmake" "${stub_of_catch_module}")
endfunction()

# The folder named by SCONCE_DEPS_DIR takes precedence over installed packages, both as a prefix and with a usr/ folder
# inside.
function(prove_prefix)
  write_prefix("${room}/prefix")
  configure("$ENV{PATH}" "${room}/build-prefix" "-DSCONCE_DEPS_DIR=${room}/prefix")
  expect_found("a prefix in SCONCE_DEPS_DIR" "(found in ${room}/prefix/")
  expect_works("a prefix in SCONCE_DEPS_DIR" "${room}/build-prefix")
  write_prefix("${room}/debs/usr")
  configure("$ENV{PATH}" "${room}/build-debs" "-DSCONCE_DEPS_DIR=${room}/debs")
  expect_found("unpacked packages in SCONCE_DEPS_DIR" "(found in ${room}/debs/usr/")
  # CMake treats a prefix in CMAKE_PREFIX_PATH as installed.
  configure("$ENV{PATH}" "${room}/build-installed" "-DCMAKE_PREFIX_PATH=${room}/prefix")
  expect_found("installed" "(found in ${room}/prefix/")
endfunction()

# The sources in FETCHCONTENT_SOURCE_DIR_<NAME> are used, and only the target is built from them.
function(prove_sources)
  foreach(name IN LISTS names)
    write_sources(${name} "${room}/sources/${name}")
    string(TOUPPER ${name} upper)
    list(APPEND named "-DFETCHCONTENT_SOURCE_DIR_${upper}=${room}/sources/${name}")
  endforeach()
  configure("$ENV{PATH}" "${room}/build-sources" ${named})
  expect_found("FETCHCONTENT_SOURCE_DIR_*" "(source in ${room}/sources/")
  if(output MATCHES "the stub talks")
    message(FATAL_ERROR "a dependency's own messages are printed:\n${output}")
  endif()
  expect_works("FETCHCONTENT_SOURCE_DIR_*" "${room}/build-sources")
endfunction()

# The tag is fetched from the Git host, which a local repository replaces here. A repeated configure run finds the same
# dependency without git.
function(prove_git)
  find_program(git git NO_CACHE)
  if(NOT git)
    message(STATUS "git is missing: not tried")
    return()
  endif()
  file(STRINGS "${SOURCE}/cmake/SconceDependencies.cmake" rows REGEX "^ *\"[A-Za-z0-9_]+ \\| ")
  set(count 0)
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^ *\"([A-Za-z0-9_]+) .* \\| ([^ ]+) \\| ([^\"]+)\".*" "\\1;\\2;\\3" row "${row}")
    list(POP_FRONT row name tag repository)
    write_sources(${name} "${room}/host/${name}")
    foreach(command IN ITEMS "init -q" "add ." "-c user.name=stub -c user.email=stub commit -q -m stub" "tag ${tag}")
      separate_arguments(command UNIX_COMMAND "${command}")
      execute_process(COMMAND ${git} ${command} WORKING_DIRECTORY "${room}/host/${name}" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    set(ENV{GIT_CONFIG_KEY_${count}} "url.file://${room}/host/${name}.insteadOf")
    set(ENV{GIT_CONFIG_VALUE_${count}} "${repository}")
    math(EXPR count "${count} + 1")
    list(APPEND disabled -DCMAKE_DISABLE_FIND_PACKAGE_${name}=ON)
  endforeach()
  set(ENV{GIT_CONFIG_COUNT} ${count})
  configure("$ENV{PATH}" "${room}/build-git" ${disabled})
  expect_found("fetched by tag" "(source from ")
  expect_works("fetched by tag" "${room}/build-git")
  set(first "${found}")
  unset(ENV{GIT_CONFIG_COUNT})
  make_path("${WORK}/path-without-git")
  configure("${WORK}/path-without-git" "${room}/build-git")
  expect_success("fetched by tag, configured again without git")
  if(NOT found STREQUAL first)
    message(FATAL_ERROR "a repeated configure printed:\n${found}\nthe first one:\n${first}")
  endif()
endfunction()

# If every step fails, the message has at most eight lines and suggests fixes. If only an optional dependency is
# missing, the configure run continues.
function(prove_failure)
  make_path("${WORK}/path-of-a-compiler")
  configure("${WORK}/path-of-a-compiler" "${room}/build-failure" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
            "-DSCONCE_DEPS_DIR=${room}/empty" "-DSCONCE_SETUP_DIR=${room}/setup-failure")
  string(FIND "${output}" "CMake Error" position)
  if(code EQUAL 0 OR position EQUAL -1)
    message(FATAL_ERROR "expected an error, got:\n${output}")
  endif()
  string(SUBSTRING "${output}" ${position} -1 error)
  string(REPLACE ";" "," lines "${error}")
  string(REGEX MATCHALL "[^\n]+\n" lines "${lines}")
  list(LENGTH lines count)
  if(count GREATER 8)
    message(FATAL_ERROR "the error has ${count} lines:\n${error}")
  endif()
  foreach(text IN ITEMS "no Catch2 3.7 or newer" "not in ${room}/empty" "not installed" "no apt-get" "no git"
                        "apt install libcatch2-dev" "-DSCONCE_DEPS_DIR=" "-DFETCHCONTENT_SOURCE_DIR_CATCH2=")
    string(FIND "${error}" "${text}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "the error does not say '${text}':\n${error}")
    endif()
  endforeach()
  expect_clean_cache("${room}/build-failure")
  write_prefix("${room}/prefix-later")
  configure("$ENV{PATH}" "${room}/build-failure" "-DSCONCE_DEPS_DIR=${room}/prefix-later")
  expect_found("after a failure" "(found in ${room}/prefix-later/")
  configure("${WORK}/path-of-a-compiler" "${room}/build-optional" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DOPTIONAL_ONLY=ON
            "-DSCONCE_SETUP_DIR=${room}/setup-failure")
  expect_success("without an optional dependency")
  if(NOT output MATCHES "no httplib 0.11 or newer: [^\n]*Without httplib, the check is left out")
    message(FATAL_ERROR "without an optional dependency: expected a message, got:\n${output}")
  endif()
endfunction()

# Computes the checksums of the files in apt's system folders that this user may read.
function(system_state out)
  file(GLOB_RECURSE files /etc/apt/* /var/lib/apt/lists/*)
  set(${out} "")
  foreach(file IN LISTS files)
    execute_process(COMMAND ${CMAKE_COMMAND} -E sha256sum "${file}" OUTPUT_VARIABLE sum ERROR_QUIET)
    string(APPEND ${out} "${sum}")
  endforeach()
  return(PROPAGATE ${out})
endfunction()

# Two simultaneous configure runs unpack the distribution's packages without touching the system's apt. A later build
# folder finds the packages without apt. An incomplete package is unpacked again.
function(prove_packages)
  find_program(apt_get apt-get NO_CACHE)
  if(apt_get)
    execute_process(COMMAND ${apt_get} indextargets --no-release-info --format "$(BASE_URI)InRelease"
                    OUTPUT_VARIABLE indexes)
    string(REGEX MATCH "^[^\n]*" index "${indexes}")
    execute_process(COMMAND /usr/lib/apt/apt-helper -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10
                            -o APT::Sandbox::User=root download-file "${index}" "${room}/index"
                    TIMEOUT 40 OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT EXISTS "${room}/index")
    message(STATUS "skipped: no network (or no apt-get)")
    return()
  endif()

  # apt's helpers need all of these programs. The folder must not be named bin, or CMake would search next to it.
  cmake_path(GET apt_get PARENT_PATH programs)
  file(CREATE_LINK "${programs}" "${WORK}/path-with-apt" SYMBOLIC)
  make_path("${WORK}/path-without-apt")
  set(only_packages -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF)
  set(say "(unpacked from the Debian package)")
  system_state(before)
  file(WRITE "${room}/twice.sh" "PATH=$1; shift\n\"$@\" -B one > one.txt 2>&1 &\n\"$@\" -B two > two.txt 2>&1; wait\n")
  execute_process(COMMAND sh twice.sh "${WORK}/path-with-apt" ${configure_command} ${only_packages}
                  WORKING_DIRECTORY "${room}")
  foreach(build IN ITEMS one two)
    file(READ "${room}/${build}.txt" output)
    set(found "${output}")
    if(output MATCHES "apt-get's newest")
      message(STATUS "skipped: this distribution's packages are too old: ${output}")
      return()
    endif()
    set(code 0)
    expect_found("unpacked by two configures at once" "${say}")
  endforeach()
  system_state(after)
  if(NOT before STREQUAL after)
    message(FATAL_ERROR "the system's apt folders have changed")
  endif()
  expect_works("unpacked" "${room}/one")
  execute_process(COMMAND readelf -d "${room}/one/check" OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
  if(NOT libraries MATCHES "NEEDED[^\n]*libcpp-httplib\\." OR libraries MATCHES "NEEDED[^\n]*libz\\.")
    message(FATAL_ERROR "the unpacked zlib is not the static one:\n${libraries}")
  endif()

  configure("${WORK}/path-without-apt" "${room}/later" ${only_packages})
  expect_found("unpacked before, configured without apt" "${say}")
  expect_clean_cache("${room}/later")
  file(REMOVE "${room}/setup/deps/CLI11/unpacked.txt")
  file(WRITE "${room}/setup/deps/CLI11.new/half" "")
  configure("${WORK}/path-without-apt" "${room}/half" ${only_packages})
  if(code EQUAL 0)
    message(FATAL_ERROR "an incomplete unpack was used:\n${output}")
  endif()
  configure("${WORK}/path-with-apt" "${room}/half")
  expect_found("an incomplete unpack" "${say}")
  if(EXISTS "${room}/setup/deps/CLI11.new" OR EXISTS "${room}/setup/deps/CLI11/half")
    message(FATAL_ERROR "an incomplete unpack left files behind")
  endif()
endfunction()

foreach(part IN LISTS PARTS)
  string(TIMESTAMP start "%s")
  cmake_language(CALL prove_${part})
  string(TIMESTAMP end "%s")
  math(EXPR seconds "${end} - ${start}")
  message(STATUS "${part}: done in ${seconds} s")
endforeach()
