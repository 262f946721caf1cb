# Finds cpp-httplib either through its CMake package or in the form installed by Debian: a compiled library and a
# pkg-config file without a CMake package. The macros in the pkg-config file change the classes in the header and must
# match the library. Creates the target httplib::httplib and sets httplib_INCLUDE_DIRS and httplib_VERSION_STRING, like
# FindZLIB.
find_package(httplib ${httplib_FIND_VERSION} CONFIG QUIET)
if(TARGET httplib::httplib)
  return()
endif()

find_path(httplib_INCLUDE_DIR httplib.h)
find_library(httplib_LIBRARY cpp-httplib)
set(folders httplib_INCLUDE_DIR)
set(includes "")
if(httplib_LIBRARY AND httplib_INCLUDE_DIR)
  file(STRINGS "${httplib_INCLUDE_DIR}/httplib.h" line REGEX "define CPPHTTPLIB_VERSION ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" httplib_VERSION_STRING "${line}")
  cmake_path(GET httplib_LIBRARY PARENT_PATH folder)
  file(STRINGS "${folder}/pkgconfig/cpp-httplib.pc" line REGEX "^Cflags:")
  string(REGEX MATCHALL "CPPHTTPLIB_[A-Z_]+" macros "${line}")
  # If these macros are defined, httplib.h includes headers from other libraries.
  set(header_of_OPENSSL openssl/ssl.h)
  set(header_of_ZLIB zlib.h)
  set(header_of_BROTLI brotli/encode.h)
  set(header_of_ZSTD zstd.h)
  foreach(library IN ITEMS OPENSSL ZLIB BROTLI ZSTD)
    if("CPPHTTPLIB_${library}_SUPPORT" IN_LIST macros)
      find_path(httplib_${library}_DIR ${header_of_${library}})
      list(APPEND folders httplib_${library}_DIR)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(httplib REQUIRED_VARS httplib_LIBRARY ${folders} VERSION_VAR httplib_VERSION_STRING)
if(httplib_FOUND)
  set(httplib_INCLUDE_DIRS "${httplib_INCLUDE_DIR}")
  add_library(httplib::httplib SHARED IMPORTED)
  # With DT_RPATH instead of DT_RUNPATH, a program can also find the libraries that its libraries need.
  set_target_properties(httplib::httplib PROPERTIES IMPORTED_LOCATION "${httplib_LIBRARY}"
    INTERFACE_COMPILE_DEFINITIONS "${macros}" INTERFACE_LINK_OPTIONS LINKER:--disable-new-dtags)
  foreach(folder IN LISTS folders)
    list(APPEND includes "${${folder}}")
    if(EXISTS "${${folder}}/${CMAKE_LIBRARY_ARCHITECTURE}") # Debian's folder for OpenSSL's configuration
      list(APPEND includes "${${folder}}/${CMAKE_LIBRARY_ARCHITECTURE}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES includes)
  target_include_directories(httplib::httplib SYSTEM INTERFACE ${includes})
endif()
