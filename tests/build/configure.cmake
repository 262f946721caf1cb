# Helpers for the tests of the configure step, which configure sconce in a folder under WORK and check the result.

# Packages that these variables point to would be found before the stand-ins.
foreach(name Torch_DIR Torch_ROOT CMAKE_PREFIX_PATH PYTHONPATH)
  unset(ENV{${name}})
endforeach()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# Configures sconce in a separate build folder. Further arguments are passed to cmake. Sets result and output.
macro(configure name)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${name}" -G Ninja
            -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF -DSCONCE_SETUP_DIR=${WORK}/${name}-setup
            -DSCONCE_DEPS_DIR=${DEPS}
            ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
endmacro()

# Fails unless each of the given texts was printed.
function(expect_parts name printed)
  foreach(part ${ARGN})
    string(FIND "${printed}" "${part}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "${name}: '${part}' is not in:\n${printed}")
    endif()
  endforeach()
  message(STATUS "${name}: as expected")
endfunction()

# Fails unless the configure run stopped with an error message from sconce that has at most eight lines and contains
# each of the given texts.
macro(expect_stop name)
  if(result EQUAL 0)
    message(FATAL_ERROR "${name}: configured, expected an error\n${output}")
  endif()
  if(NOT output MATCHES "\n *sconce: ([^\n]*(\n[^\n]+)*)")
    message(FATAL_ERROR "${name}: no message from sconce\n${output}")
  endif()
  set(text "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "Call Stack.*" "" text "${text}")
  string(REGEX MATCHALL "\n" breaks "${text}")
  list(LENGTH breaks count)
  if(count GREATER_EQUAL 8)
    message(FATAL_ERROR "${name}: a message of more than eight lines\n${text}")
  endif()
  expect_parts(${name} "${text}" ${ARGN})
endmacro()

# Fails unless the configure run succeeded and printed each of the given texts.
macro(expect_configured name)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name}: stopped, expected it to configure\n${output}")
  endif()
  expect_parts(${name} "${output}" ${ARGN})
endmacro()

# Use the interpreter itself, because a version manager's shim takes longer to start than Python.
find_program(python3 python3 REQUIRED)
execute_process(COMMAND "${python3}" -c "import sys; print(sys.executable)"
                OUTPUT_VARIABLE python3 OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Creates a Python without packages, and therefore without torch. <body> is shell code that runs before it.
function(make_python file body)
  file(WRITE "${file}" "#!/bin/sh\n${body}\nexec '${python3}' -S \"$@\"\n")
  file(CHMOD "${file}" PERMISSIONS OWNER_READ OWNER_EXECUTE OWNER_WRITE)
endfunction()

# Creates a stand-in for LibTorch that contains only a version and a target.
function(make_torch folder version)
  file(WRITE "${folder}/share/cmake/Torch/TorchConfigVersion.cmake"
       "set(PACKAGE_VERSION ${version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)
if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)\nset(PACKAGE_VERSION_EXACT TRUE)\nendif()\n")
  file(WRITE "${folder}/share/cmake/Torch/TorchConfig.cmake"
       "if(NOT TARGET torch_library)\nadd_library(torch_library INTERFACE IMPORTED)\nendif()\nset(Torch_FOUND TRUE)\n")
endfunction()
