# Configures CPack. `cpack --config <build>/CPackConfig.cmake` packs the files that `cmake --install` installs, and
# `cpack --config <build>/CPackSourceConfig.cmake` packs the sources. The script tests/release.py creates the archives
# for a release.
set(CPACK_PACKAGE_NAME sconce-cpp)
set(CPACK_PACKAGE_VENDOR "The sconce authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_RESOURCE_FILE_README "${PROJECT_SOURCE_DIR}/README.md")
set(CPACK_GENERATOR TGZ)
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_IGNORE_FILES "/[.]git/" "^${PROJECT_SOURCE_DIR}/build/")
set(CPACK_SOURCE_PACKAGE_FILE_NAME "sconce-cpp-${PROJECT_VERSION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
