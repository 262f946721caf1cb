# The same rule as for an installed sconce: the minor version must match, and the version must not be older.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../source/include/sconce/version.hpp" lines
     REGEX "define SCONCE_VERSION_[A-Z]+ [0-9]+")
string(REGEX REPLACE "[^;]*VERSION_[A-Z]+ ([0-9]+)" "\\1" numbers "${lines}")
list(JOIN numbers "." PACKAGE_VERSION)
list(GET numbers 0 major)
list(GET numbers 1 minor)
if("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "${major}.${minor}"
   AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE ON)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT ON)
  endif()
endif()
