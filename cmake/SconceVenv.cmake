# The pinned LibTorch wheel in a virtual environment of the build's own: what a machine gets that
# has no LibTorch. Everything lies under SCONCE_SETUP_DIR, which the presets share.

include_guard(GLOBAL)

# Runs a set-up command with its output in <log>; stops with the log's last lines if it fails.
function(sconce_set_up log what)
  execute_process(COMMAND ${ARGN} OUTPUT_FILE "${log}" ERROR_FILE "${log}" RESULT_VARIABLE failed)
  if(NOT failed)
    return()
  endif()
  file(STRINGS "${log}" lines)
  list(FILTER lines INCLUDE REGEX "^ERROR|^Error|ensurepip is not|No module")
  list(APPEND lines "(no error line in the log)")
  list(GET lines 0 first)
  string(SUBSTRING "${first}" 0 160 first)
  sconce_stop("${what} failed (${log}):"
              "  ${first}"
              "Looked before in: Torch_DIR, CMAKE_PREFIX_PATH, the active Python. What helps, one of:"
              "  apt install python3-venv      if the virtual environment could not be made"
              "  pip install torch==${version}      with network, in the active Python environment"
              "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...      with a LibTorch at hand")
endfunction()

# Sets <out> to the torch folder of the environment; makes the environment unless it is complete.
# Two builds at once wait for one another; a set-up that was cut off is begun again.
function(sconce_torch_of_venv out)
  set(version ${SCONCE_TORCH_NEWEST})
  if(DEFINED SCONCE_TORCH_VERSION)
    set(version ${SCONCE_TORCH_VERSION})
  endif()
  set(venv "${SCONCE_SETUP_DIR}/torch-${version}")
  set(python "${venv}/bin/python")
  sconce_lock_setup()
  # Asked for its torch, an environment whose Python has gone since answers with nothing.
  sconce_torch_of_python(root "${python}")
  # Beside torch what the tests compare with: Python's safetensors, and numpy, which it wants.
  set(packages torch==${version} numpy safetensors)
  set(installed "")
  if(EXISTS "${venv}/complete")
    file(READ "${venv}/complete" installed)
  endif()
  if(NOT root OR NOT installed STREQUAL packages)
    if(NOT Python3_Interpreter_FOUND)
      sconce_stop("no LibTorch and no Python 3 to install one with"
                  "Looked in: Torch_DIR, CMAKE_PREFIX_PATH, PATH (python3). What helps, one of:"
                  "  apt install python3-venv python3-pip"
                  "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
    endif()
    message(STATUS "sconce: installing LibTorch ${version} into ${venv}"
                   " (about 3 GB to download, 5 GB on disk; progress: ${venv}.log)")
    if(NOT EXISTS "${venv}/complete")
      file(REMOVE_RECURSE "${venv}")
    endif()
    sconce_set_up("${venv}.log" "making a virtual environment with ${Python3_EXECUTABLE}"
                  "${Python3_EXECUTABLE}" -m venv "${venv}")
    sconce_set_up("${venv}.log" "installing torch ${version} with pip"
                  "${python}" -m pip install --disable-pip-version-check --no-input
                  ${packages})
    sconce_torch_of_python(root "${python}")
    if(NOT root)
      sconce_stop("pip installed torch ${version}, but ${python} does not find it (${venv}.log)"
                  "What helps: cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
    endif()
    file(WRITE "${venv}/complete" "${packages}")
  endif()
  set(${out} "${root}" PARENT_SCOPE)
endfunction()
