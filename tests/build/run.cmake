# Functions that the package tests share.

# Runs a command with PYTHON first on the PATH. Stops if it fails. Leaves its output in output.
function(run what)
  cmake_path(GET PYTHON PARENT_PATH bin)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${bin}:$ENV{PATH}" ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Runs a pip command that builds a wheel. If pip does not find hatchling, prints this message and ends the calling
# script, which CTest shows as skipped. This is a macro so that `return` ends the caller.
macro(make_wheel_or_skip what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed AND output MATCHES "No matching distribution found for hatchling")
    message(STATUS "skipped: pip finds no hatchling, which makes the wheel")
    return()
  elseif(failed)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
endmacro()

# Stops unless the output of the last command matches.
function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "expected '${pattern}', got:\n${output}")
  endif()
endfunction()

# Runs a command that must fail and whose output must match.
function(expect_failure pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE output)
  if(NOT failed)
    message(FATAL_ERROR "expected a failure with '${pattern}'")
  endif()
  expect("${pattern}")
endfunction()

# Builds the program of apps/template in <project>/build, which is already configured, and runs it.
function(build_template project)
  run("building" "${CMAKE_COMMAND}" --build "${project}/build")
  if(output MATCHES "warning:")
    message(FATAL_ERROR "expected no warning, got:\n${output}")
  endif()
  run("running" "${project}/build/train")
  expect("epoch 10/10: loss [0-9.]+, train acc (1|0[.]9)")
  # The README shows the same lines with different numbers from another machine.
  file(READ "${SOURCE}/README.md" shown)
  string(REGEX MATCH "\n(epoch 1/10:[^`]*)\n```" block "${shown}")
  string(REPLACE "..." ".*" pattern "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "[0-9]+[.][0-9]+" "[0-9.]+" pattern "${pattern}")
  string(REGEX REPLACE " on cpu$" " on [a-z]+" pattern "${pattern}")
  expect("${pattern}")
endfunction()
