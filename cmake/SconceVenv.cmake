# Installs the pinned LibTorch wheel in a virtual environment for the build, for machines without LibTorch. All files
# are under SCONCE_SETUP_DIR, which the presets share.

include_guard(GLOBAL)

# Runs a setup command and writes its output to <log>. If the command fails, stops with the first error line in the log.
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
  set(looked "")
  set(venv_help "  apt install python3-venv      if the virtual environment could not be created")
  if("pip" IN_LIST ARGN)
    set(venv_help "") # the venv module is installed
    # pip prints the indexes that it uses, without passwords, unless it uses only the default index.
    file(STRINGS "${log}" looked LIMIT_COUNT 1 REGEX "^(Looking in|Ignoring) indexes: ")
    if(NOT looked)
      set(looked "Looking in indexes: pip's own, if its settings allow one")
    endif()
  endif()
  set(places "Torch_DIR, CMAKE_PREFIX_PATH, the active Python")
  set(helps "  pip install torch==${version}      with network, in the active Python environment")
  if(SCONCE_TORCH_VARIANT STREQUAL "cpu")
    string(APPEND places ", the distribution")
    set(helps "  apt install libtorch-dev      if the distribution has LibTorch ${SCONCE_TORCH_OLDEST} or newer"
              "  cmake -DSCONCE_TORCH_INDEX_URL=<index> ...      with an index that has CPU wheels")
  endif()
  sconce_stop("${what} failed (${log}):"
              "  ${first}"
              ${looked}
              "Already looked in: ${places}. To fix this, use one of:"
              ${venv_help}
              ${helps}
              "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...      with an existing LibTorch")
endfunction()

# Sets <out> to the environment's torch folder. Creates the environment unless it is complete. Simultaneous builds wait
# for each other. An interrupted setup starts over.
function(sconce_torch_of_venv out)
  sconce_wanted_wheel(version)
  string(REPLACE "+" "-" folder "torch-${version}")
  set(venv "${SCONCE_SETUP_DIR}/${folder}")
  set(python "${venv}/bin/python")
  sconce_lock_setup()
  # `root` is empty if the environment's Python has been removed in the meantime.
  sconce_torch_of_python(root "${python}")
  # The tests also compare results with Python's safetensors package, which requires numpy.
  set(packages torch==${version} numpy safetensors)
  set(installed "")
  if(EXISTS "${venv}/complete")
    file(READ "${venv}/complete" installed)
  endif()
  if(NOT root OR NOT installed STREQUAL packages)
    if(NOT Python3_Interpreter_FOUND)
      sconce_stop("no LibTorch and no Python 3 to install one with"
                  "Looked in: Torch_DIR, CMAKE_PREFIX_PATH, PATH (python3). To fix this, use one of:"
                  "  apt install python3-venv python3-pip"
                  "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
    endif()
    set(size "about 3 GB to download, 5 GB on disk")
    if(SCONCE_TORCH_VARIANT STREQUAL "cpu")
      set(size "about 0.2 GB to download, 0.9 GB on disk")
    elseif(SCONCE_TORCH_INDEX_URL)
      sconce_stop("SCONCE_TORCH_INDEX_URL is for CPU wheels, but SCONCE_TORCH_VARIANT is not cpu"
                  "To fix this, use one of:"
                  "  cmake -DSCONCE_TORCH_VARIANT=cpu ...      for LibTorch without CUDA"
                  "  cmake -USCONCE_TORCH_INDEX_URL ...      for LibTorch with CUDA, ${size}")
    endif()
    message(STATUS "sconce: installing LibTorch ${version} into ${venv}"
                   " (${size}; progress: ${venv}.log)")
    if(NOT EXISTS "${venv}/complete")
      file(REMOVE_RECURSE "${venv}")
    endif()
    sconce_set_up("${venv}.log" "creating a virtual environment with ${Python3_EXECUTABLE}"
                  "${Python3_EXECUTABLE}" -m venv "${venv}")
    set(pip_install "${python}" -m pip install --disable-pip-version-check --no-input)
    # PyTorch is installed separately before the other packages. An index of CPU wheels may not contain the other
    # packages, and with --extra-index-url, pip may install any package from either index.
    if(SCONCE_TORCH_INDEX_URL)
      sconce_set_up("${venv}.log" "installing torch ${version} from SCONCE_TORCH_INDEX_URL"
                    ${pip_install} --no-deps --index-url "${SCONCE_TORCH_INDEX_URL}"
                    torch==${version})
    endif()
    sconce_set_up("${venv}.log" "installing torch ${version} with pip" ${pip_install} ${packages})
    sconce_torch_of_python(root "${python}")
    if(NOT root)
      sconce_stop("pip installed torch ${version}, but ${python} does not find it (${venv}.log)"
                  "To fix this: cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
    endif()
    file(WRITE "${venv}/complete" "${packages}")
  endif()
  # A version without the label +cpu does not indicate the variant, because the pip index may contain only CPU wheels.
  sconce_variant_of_torch(variant "${root}")
  if(SCONCE_TORCH_VARIANT AND NOT variant STREQUAL SCONCE_TORCH_VARIANT)
    sconce_stop("pip installed a torch ${version} for ${variant}, not for ${SCONCE_TORCH_VARIANT}"
                "Found: ${root}. To fix this, use one of:"
                "  rm -r ${venv}      and another index in pip's settings (pip config list)"
                "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...      with an existing LibTorch")
  endif()
  set(${out} "${root}" PARENT_SCOPE)
endfunction()
