# This port has not been run with vcpkg itself; tests/build/packaging.py runs its commands with stand-ins for vcpkg's
# functions.
#
# The port of sconce-cpp. It uses the LibTorch in the folder that the environment variable Torch_DIR names. vcpkg passes
# the variable on if VCPKG_KEEP_ENV_VARS contains Torch_DIR.
if("$ENV{Torch_DIR}" STREQUAL "")
  message(FATAL_ERROR "sconce-cpp: expected Torch_DIR, <libtorch>/share/cmake/Torch, in the environment, got nothing")
endif()
set(VCPKG_BUILD_TYPE release) # LibTorch has no debug libraries

vcpkg_download_distfile(ARCHIVE
  URLS "@ADDRESS@/releases/download/v@VERSION@/sconce-cpp-@VERSION@.tar.gz"
  FILENAME "sconce-cpp-@VERSION@.tar.gz"
  SHA512 @SHA512@)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS "-DTorch_DIR=$ENV{Torch_DIR}" -DCMAKE_UNITY_BUILD=ON -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF
          -DSCONCE_INSTALL_TORCH_FALLBACK=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME sconce CONFIG_PATH lib/cmake/sconce)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD_PARTY.txt")
