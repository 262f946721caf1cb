# Builds lessons and examples with the oldest supported LibTorch and compares the output of each with its twin's output.
#   cmake -DSOURCE=... -DSETUP=... -DWORK=... -P oldest_lessons.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(READ "${SOURCE}/CMakePresets.json" presets)
string(REGEX MATCH "SCONCE_TORCH_VERSION\": \"([0-9.]+)" _ "${presets}")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}" -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DSCONCE_TORCH_VERSION=${CMAKE_MATCH_1} "-DSCONCE_SETUP_DIR=${SETUP}")
file(GLOB examples RELATIVE "${SOURCE}/apps/examples" "${SOURCE}/apps/examples/*.cpp")
list(TRANSFORM examples REPLACE "^(.+)\\.cpp$" "example-\\1")
run("${CMAKE_COMMAND}" --build "${WORK}" --target lessons count-operations ${examples})

load_cache("${WORK}" READ_WITH_PREFIX "" SCONCE_TORCH_CHOSEN)
cmake_path(SET python NORMALIZE "${SCONCE_TORCH_CHOSEN}/../../../../bin/python")
run("${python}" "${SOURCE}/tests/apps/compare_lessons.py" twins
    --python "${python}" --bin "${WORK}/bin/lessons" --counter "${WORK}/tests/libcount-operations.so")
run("${python}" "${SOURCE}/tests/apps/compare_examples.py"
    --python "${python}" --bin "${WORK}/bin/examples")
