# Provides the libraries that sconce needs in addition to LibTorch. sconce_find_dependency(<Name>) creates the target
# listed in the table below, using the first location that contains it: a folder that the user specifies, an installed
# package, the distribution's package unpacked without root, or the sources from their Git host. The including file sets
# SCONCE_SETUP_DIR, the absolute path of a folder for downloaded files. Several builds may share this folder.
include(FetchContent)

set(SCONCE_DEPS_DIR "" CACHE PATH "A folder that contains sconce's dependencies: a prefix, unpacked Debian packages, or a copy of <setup>/deps")

# Name | oldest supported version | target | Debian package | tag | Git repository
set(SCONCE_DEPENDENCIES
  "Catch2 | 3.7 | Catch2::Catch2WithMain | libcatch2-dev | v3.7.1 | https://github.com/catchorg/Catch2.git"
  "CLI11 | 2.1 | CLI11::CLI11 | libcli11-dev | v2.4.2 | https://github.com/CLIUtils/CLI11.git"
  "httplib | 0.11 | httplib::httplib | libcpp-httplib-dev | v0.41.0 | https://github.com/yhirose/cpp-httplib.git"
  "nlohmann_json | 3.10 | nlohmann_json::nlohmann_json | nlohmann-json3-dev | v3.11.3 | https://github.com/nlohmann/json.git"
  "ZLIB | 1.2.11 | ZLIB::ZLIB | zlib1g-dev | v1.3.1 | https://github.com/madler/zlib.git")

# Makes the dependency's target visible in every directory, and prints one line with its version and origin. If the
# dependency is not found, configuring stops with a message that suggests fixes. With OPTIONAL <what>, the function
# prints the message and continues without <what>. Adds the Catch2 modules to the caller's CMAKE_MODULE_PATH. The
# functions below read name, minimum, target, package, tag, repository, content, and upper from this scope. On success,
# a step returns version, origin, and place (the folder where it was found). On failure, it adds its reason to why_not.
function(sconce_find_dependency name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPTIONAL" "")
  set(row ${SCONCE_DEPENDENCIES})
  list(FILTER row INCLUDE REGEX "^${name} ")
  string(REPLACE " | " ";" row "${row}")
  list(POP_FRONT row ignored minimum target package tag repository)
  string(TOLOWER ${name} content)
  string(TOUPPER ${name} upper)
  foreach(result IN ITEMS version origin why_not source_is_here)
    set(${result} "")  # the caller may use variables with the same names
  endforeach()

  get_property(place GLOBAL PROPERTY sconce_${name}_place)
  get_property(known GLOBAL PROPERTY sconce_${name}_place SET)
  if(TARGET ${target} AND NOT known)
    set(origin "from the enclosing project")
    set(place "${${name}_DIR}")  # set by find_package or, below, by add_subdirectory
    if(NOT place)
      set(place "${${name}_SOURCE_DIR}")
    endif()
  elseif(NOT TARGET ${target})
    sconce_is_source_here()
    foreach(step IN ITEMS installed unpacked source)
      if(NOT origin AND (step STREQUAL "source" OR NOT source_is_here))
        cmake_language(CALL sconce_find_${step})
      endif()
    endforeach()
    if(NOT origin)
      list(JOIN why_not "; " why_not)
      set(mode FATAL_ERROR)
      if(arg_OPTIONAL)
        set(mode STATUS)
        string(APPEND why_not ". Without ${name}, ${arg_OPTIONAL} is left out")
      endif()
      message(${mode}  # CMake does not wrap lines that start with a blank
        "  sconce: no ${name} ${minimum} or newer: ${why_not}.\n"
        "  To fix this: apt install ${package}, or -DSCONCE_DEPS_DIR=<a folder that contains it>,\n"
        "  or -DFETCHCONTENT_SOURCE_DIR_${upper}=<a folder with its sources>")
    endif()
  endif()

  if(origin)
    string(STRIP "${name} ${version}" found)
    message(STATUS "sconce: ${found} (${origin})")
    set_property(GLOBAL PROPERTY sconce_${name}_place "${place}")
    set_property(GLOBAL PROPERTY sconce_${name}_version "${version}") # for the bill of materials
  endif()
  if(name STREQUAL "Catch2")
    list(APPEND CMAKE_MODULE_PATH "${place}" "${place}/extras")  # for the package and for the sources
    return(PROPAGATE CMAKE_MODULE_PATH)
  endif()
endfunction()

# Step 1 searches the user's SCONCE_DEPS_DIR, and then the default CMake search paths.
function(sconce_find_installed)
  if(SCONCE_DEPS_DIR)
    list(PREPEND ${name}_ROOT "${SCONCE_DEPS_DIR}" "${SCONCE_DEPS_DIR}/usr" "${SCONCE_DEPS_DIR}/${name}/usr")
    list(APPEND why_not "not in ${SCONCE_DEPS_DIR}")
  endif()
  list(APPEND why_not "not installed")
  sconce_find_package(KEEP)
  if(place)
    set(origin "found in ${place}")
  endif()
  return(PROPAGATE version origin place why_not)
endfunction()

# Step 2 uses the distribution's package, unpacked under SCONCE_SETUP_DIR. CMAKE_DISABLE_FIND_PACKAGE_<Name> skips this
# step.
function(sconce_find_unpacked)
  if(CMAKE_DISABLE_FIND_PACKAGE_${name})
    return()
  endif()
  set(failure "")
  set(prefix "${SCONCE_SETUP_DIR}/deps/${name}")
  sconce_unpack("${prefix}")
  if(NOT failure)
    set(${name}_ROOT "${prefix}/usr")
    set(ZLIB_USE_STATIC_LIBS ON)  # the package's libz.so is a symbolic link into another package
    sconce_find_package(FORGET)
    if(place)
      set(origin "unpacked from the Debian package")
    else()
      set(failure "nothing usable by CMake in ${prefix}")
    endif()
  endif()
  list(APPEND why_not ${failure})
  return(PROPAGATE version origin place why_not)
endfunction()

# Step 3 builds the sources from FETCHCONTENT_SOURCE_DIR_<NAME> or the tagged sources from the Git host. It first checks
# that the host is reachable, because FetchContent prints pages of errors if there is no network. The tests, install
# rules, and messages of the fetched project are disabled.
function(sconce_find_source)
  if(FETCHCONTENT_SOURCE_DIR_${upper})
    set(origin "source in ${FETCHCONTENT_SOURCE_DIR_${upper}}")
  else()
    string(REGEX REPLACE "^v" "" version ${tag})
    set(origin "source from ${repository}")
  endif()
  if(source_is_here)
    set(FETCHCONTENT_FULLY_DISCONNECTED ON)
  elseif(NOT FETCHCONTENT_FULLY_DISCONNECTED)
    set(ENV{GIT_TERMINAL_PROMPT} 0)
    execute_process(COMMAND git ls-remote --exit-code ${repository} refs/tags/${tag}
                    TIMEOUT 30 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      list(APPEND why_not "no git, or no answer from ${repository}")
      return(PROPAGATE why_not)
    endif()
  endif()

  foreach(switch IN ITEMS BUILD_TESTING BUILD_SHARED_LIBS CMAKE_COMPILE_WARNING_AS_ERROR CLI11_BUILD_TESTS
                          CLI11_BUILD_EXAMPLES HTTPLIB_INSTALL HTTPLIB_USE_BROTLI_IF_AVAILABLE
                          HTTPLIB_USE_OPENSSL_IF_AVAILABLE HTTPLIB_USE_ZLIB_IF_AVAILABLE HTTPLIB_USE_ZSTD_IF_AVAILABLE
                          JSON_BuildTests JSON_Install ZLIB_BUILD_EXAMPLES)
    set(${switch} OFF)
  endforeach()
  set(SKIP_INSTALL_ALL ON)  # for zlib
  set(CMAKE_CXX_CLANG_TIDY "")
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # makes option() use the values above
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  FetchContent_Declare(${content} SYSTEM GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON GIT_SUBMODULES "")
  FetchContent_MakeAvailable(${content})
  set(place "${${content}_SOURCE_DIR}")
  if(TARGET zlibstatic AND NOT TARGET ZLIB::ZLIB)  # imported, because an installed sconce cannot refer to an alias
    add_library(ZLIB::ZLIB INTERFACE IMPORTED GLOBAL)
    target_link_libraries(ZLIB::ZLIB INTERFACE zlibstatic)
    target_include_directories(ZLIB::ZLIB INTERFACE "${place}" "${zlib_BINARY_DIR}")
  endif()
  if(NOT TARGET ${target})
    list(APPEND why_not "no ${target} in the sources in ${place}")
    return(PROPAGATE why_not)
  endif()
  set_property(DIRECTORY "${place}" PROPERTY EXCLUDE_FROM_ALL ON)
  if(NOT FETCHCONTENT_SOURCE_DIR_${upper})
    file(WRITE "${FETCHCONTENT_BASE_DIR}/${content}-tag.txt" ${tag})
  endif()
  return(PROPAGATE version origin place)
endfunction()

# Sets source_is_here if the user specifies the source folder, or if an earlier configure fetched exactly this tag. The
# other steps are then skipped, so that configuring again finds the same library without a network.
function(sconce_is_source_here)
  set(stamp "${FETCHCONTENT_BASE_DIR}/${content}-tag.txt")
  if(EXISTS "${stamp}" AND EXISTS "${FETCHCONTENT_BASE_DIR}/${content}-src/CMakeLists.txt")
    file(READ "${stamp}" fetched_tag)
  endif()
  if(FETCHCONTENT_SOURCE_DIR_${upper} OR "${fetched_tag}" STREQUAL tag)
    set(source_is_here ON)
  endif()
  return(PROPAGATE source_is_here)
endfunction()

# Calls find_package for steps 1 and 2. Removes the cache entries left by a failed search, and by a package whose folder
# may be deleted before the next run. Otherwise, ZLIB_LIBRARY-NOTFOUND or a path to a deleted folder would affect the
# next search.
function(sconce_find_package keep)
  get_cmake_property(before CACHE_VARIABLES)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # a project that adds sconce as a subdirectory must see the targets too
  set(CMAKE_FIND_USE_PACKAGE_ROOT_PATH ON)
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")  # Findhttplib
  find_package(${name} ${minimum} QUIET)
  if(TARGET ${target})
    if(${name}_CONFIG)
      cmake_path(GET ${name}_CONFIG PARENT_PATH place)
      set(version "${${name}_VERSION}")
    else()  # set by FindZLIB and Findhttplib
      set(place "${${name}_INCLUDE_DIRS}")
      set(version "${${name}_VERSION_STRING}")
    endif()
  endif()
  get_cmake_property(added CACHE_VARIABLES)
  list(REMOVE_ITEM added ${before})
  list(FILTER added INCLUDE REGEX "^${name}_")
  foreach(variable IN LISTS added)
    if(NOT place OR keep STREQUAL "FORGET")
      unset(${variable} CACHE)
    endif()
  endforeach()
  return(PROPAGATE version place)
endfunction()

# Fills the folder `prefix` with the package's files. If that fails, stores the reason in `failure`. A lock prevents
# other builds from filling the folder at the same time. The folder is filled under a temporary name and renamed at the
# end, so an interrupted run starts over and a completed run is not repeated. A stamp file stores the request.
function(sconce_unpack prefix)
  file(MAKE_DIRECTORY "${SCONCE_SETUP_DIR}/deps")
  file(LOCK "${SCONCE_SETUP_DIR}/deps" DIRECTORY GUARD FUNCTION TIMEOUT 600)
  if(EXISTS "${prefix}/unpacked.txt")
    file(READ "${prefix}/unpacked.txt" stamp)
    if(stamp STREQUAL "${package} ${minimum}")
      return()
    endif()
  endif()
  find_program(apt_get apt-get NO_CACHE)
  find_program(dpkg_deb dpkg-deb NO_CACHE)
  if(NOT apt_get OR NOT dpkg_deb)
    set(failure "no apt-get and dpkg-deb to unpack ${package}")
    return(PROPAGATE failure)
  endif()
  sconce_update_apt("${SCONCE_SETUP_DIR}/apt")
  set(config -c "${SCONCE_SETUP_DIR}/apt/apt.conf")
  set(quiet OUTPUT_QUIET ERROR_QUIET)

  set(asked "")
  set(wanted "")
  set(missing ${package})
  while(missing)
    list(POP_FRONT missing next)
    sconce_find_offer(${next} "${config}")
    if(next STREQUAL package AND offered STREQUAL "")
      set(failure "no ${package} from apt-get, or no network")
      return(PROPAGATE failure)
    elseif(next STREQUAL package AND offered VERSION_LESS minimum)
      set(failure "apt-get's newest ${package} is ${offered}")
      return(PROPAGATE failure)
    endif()
    list(APPEND wanted ${offers})
    list(APPEND asked ${next})
    list(APPEND missing ${headers})
    list(REMOVE_DUPLICATES missing)
    list(REMOVE_ITEM missing ${asked})
  endwhile()

  file(REMOVE_RECURSE "${prefix}" "${prefix}.new")
  file(MAKE_DIRECTORY "${prefix}.new")
  execute_process(COMMAND ${apt_get} ${config} download ${wanted} WORKING_DIRECTORY "${prefix}.new" TIMEOUT 300
                  RESULT_VARIABLE failed ${quiet})
  file(GLOB archives "${prefix}.new/*.deb")
  foreach(archive IN LISTS archives)
    execute_process(COMMAND ${dpkg_deb} -x "${archive}" "${prefix}.new" RESULT_VARIABLE broken ${quiet})
    if(broken)
      set(failed ON)
    endif()
  endforeach()
  if(failed)
    set(failure "${package} could not be downloaded and unpacked")
    return(PROPAGATE failure)
  endif()
  file(REMOVE ${archives})
  file(WRITE "${prefix}.new/unpacked.txt" "${package} ${minimum}")
  file(RENAME "${prefix}.new" "${prefix}")
endfunction()

# Asks apt for the newest version of a package. Sets `offered` to the version without epoch and revision, `offers` to
# the packages to download, and `headers` to the packages that provide the headers included by this package's headers. A
# -dev package requires the library from the same source package in exactly the same version, and the -dev packages of
# other libraries. A dependency with an alternative, such as libc6-dev, is installed with the compiler.
function(sconce_find_offer dev config)
  execute_process(COMMAND apt-cache ${config} madison ${dev} OUTPUT_VARIABLE answer ERROR_QUIET)
  string(REGEX MATCH "\\| *([^ |]+) \\|" ignored "${answer}")  # the newest is listed first
  set(offer "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "^([0-9]+:)?([0-9]+(\\.[0-9]+)*).*" "\\2" offered "${offer}")
  set(offers "${dev}=${offer}")
  set(headers "")
  execute_process(COMMAND apt-cache ${config} show ${offers} OUTPUT_VARIABLE entry ERROR_QUIET)
  string(REGEX MATCH "\nDepends: ([^\n]*)" ignored "${entry}")
  string(REGEX REPLACE ", *" ";" needs "${CMAKE_MATCH_1}")
  foreach(need IN LISTS needs)
    if(need MATCHES "^([^ ]+) \\(= (.*)\\)$" AND CMAKE_MATCH_2 STREQUAL offer)
      list(APPEND offers "${CMAKE_MATCH_1}=${offer}")
    elseif(need MATCHES "^([^ ]+-dev)( \\([^)|]*\\))?$")
      list(APPEND headers ${CMAKE_MATCH_1})
    endif()
  endforeach()
  return(PROPAGATE offered offers headers)
endfunction()

# Fetches the package indexes into a separate state folder with a separate sources list, once per configure run. The
# function times out after 45 s, and the search continues with the next step. A later configure run resumes the
# download. The function does not write any system files. The system's hooks and all indexes except the package indexes
# for this architecture are disabled. apt's cache is kept, because parsing the indexes would otherwise take a second per
# call. The sources list is copied from the system because it contains the mirrors, options, and keys (apt-get
# indextargets does not print the keys). On Debian, the backports are added, because Catch2 3 for Debian 12 is available
# only there.
function(sconce_update_apt folder)
  get_property(updated GLOBAL PROPERTY sconce_apt_updated)
  if(updated)
    return()
  endif()
  set_property(GLOBAL PROPERTY sconce_apt_updated ON)
  file(REMOVE_RECURSE "${folder}/sources")
  file(MAKE_DIRECTORY "${folder}/state" "${folder}/cache" "${folder}/sources")
  execute_process(COMMAND apt-config shell architecture APT::Architecture OUTPUT_VARIABLE architecture)
  string(REGEX REPLACE "architecture='(.*)'\n" "\\1" architecture "${architecture}")
  file(CONFIGURE OUTPUT "${folder}/apt.conf" @ONLY CONTENT [[
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages { ShortDescription "Packages"; Description "$(RELEASE)/$(COMPONENT)";
  MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages"; flatMetaKey "Packages"; };
#clear Acquire::Languages;
Acquire { Languages { "none"; }; GzipIndexes "true"; Retries "1"; http::Timeout "10"; https::Timeout "10"; };
#clear APT::Update;
APT::Sandbox::User "root";
#clear APT::Architectures;
APT::Architectures { "@architecture@"; };
Dir { State "@folder@/state"; State::lists "lists/"; Cache "@folder@/cache"; Cache::archives "archives/"; };
Dir::Cache { pkgcache "pkgcache.bin"; srcpkgcache ""; };
Dir::Etc { sourcelist "/dev/null"; sourceparts "@folder@/sources"; };
]])
  cmake_host_system_information(RESULT system QUERY DISTRIB_ID)
  cmake_host_system_information(RESULT suite QUERY DISTRIB_VERSION_CODENAME)
  execute_process(COMMAND apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d
                  OUTPUT_VARIABLE paths)
  execute_process(COMMAND apt-get indextargets --no-release-info --format "$(RELEASE)"
                  OUTPUT_VARIABLE suites ERROR_QUIET)
  string(REGEX REPLACE "list='(.*)'\nparts='(.*)/'\n" "\\1;\\2/*.list;\\2/*.sources" paths "${paths}")
  file(GLOB files ${paths})
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    if(system STREQUAL "debian" AND suite AND NOT suites MATCHES "${suite}-backports")
      set(text "\n${text}\n")
      string(REGEX REPLACE "\n(deb[ \t][^\n]*[ \t])${suite}([ \t][^\n]*)" "\\0\n\\1${suite}-backports\\2"
             text "${text}")
      string(REGEX REPLACE "(\nSuites:[^\n]*[ \t]${suite})([ \t\n])" "\\1 ${suite}-backports\\2" text "${text}")
    endif()
    cmake_path(GET file FILENAME file_name)
    file(WRITE "${folder}/sources/${file_name}" "${text}")
  endforeach()
  execute_process(COMMAND apt-get -c "${folder}/apt.conf" update TIMEOUT 45 OUTPUT_QUIET ERROR_QUIET)
endfunction()
