#!/usr/bin/env bash
# conda-build runs this script in the unpacked archive and sets CMAKE_ARGS, CPU_COUNT, and PREFIX.
set -euo pipefail
# shellcheck disable=SC2086  # CMAKE_ARGS is a list of arguments
cmake -S . -B build -G Ninja ${CMAKE_ARGS} -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF -DSCONCE_INSTALL_TORCH_FALLBACK=OFF
cmake --build build --parallel "$CPU_COUNT"
cmake --install build --prefix "$PREFIX"
