# Installs the packages that the tests of sconce-export need in addition to PyTorch: ONNX, its exporter, and ONNX
# Runtime. All versions are pinned, and the packages go into a folder for PYTHONPATH. The LibTorch environment, which
# may belong to the user, is not modified.

include_guard(GLOBAL)

set(SCONCE_ONNX_PACKAGES
  flatbuffers==25.12.19 ml_dtypes==0.6.0 onnx==1.23.2 onnx-ir==1.1.0 onnxruntime==1.32.0 onnxscript==0.7.2
  packaging==26.4 protobuf==7.36.2)

# Sets <out> to the folder with the packages for <python>: onnx-<version of Python> in SCONCE_DEPS_DIR or in
# SCONCE_SETUP_DIR/deps. If neither folder is complete, installs the packages in the latter. If the installation fails,
# the tests that need the packages fail too.
function(sconce_find_onnx out python)
  execute_process(COMMAND "${python}" -c "import sys; print('%d.%d' % sys.version_info[:2])"
                  OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(folder "${SCONCE_SETUP_DIR}/deps/onnx-${version}")
  sconce_lock_setup()
  foreach(candidate IN ITEMS "${SCONCE_DEPS_DIR}/onnx-${version}" "${folder}")
    set(installed "")
    if(EXISTS "${candidate}/complete.txt")
      file(READ "${candidate}/complete.txt" installed)
    endif()
    if(installed STREQUAL SCONCE_ONNX_PACKAGES)
      set(${out} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "${folder}" PARENT_SCOPE)
  message(STATUS "sconce: installing ONNX and ONNX Runtime into ${folder} (about 40 MB to download, 125 MB on disk;"
                 " progress: ${folder}.log)")
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${SCONCE_SETUP_DIR}/deps")
  execute_process(
    COMMAND "${python}" -m pip install --disable-pip-version-check --no-input --retries 1 --no-deps
            --target "${folder}" ${SCONCE_ONNX_PACKAGES}
    OUTPUT_FILE "${folder}.log" ERROR_FILE "${folder}.log" RESULT_VARIABLE failed)
  if(failed)
    file(REMOVE_RECURSE "${folder}")
    message(STATUS "sconce: ONNX and ONNX Runtime could not be installed (${folder}.log): the tests sconce-export* will"
                   " fail. To fix this, connect to a network or set -DSCONCE_DEPS_DIR=<a copy of deps from another"
                   " machine>")
    return()
  endif()
  file(WRITE "${folder}/complete.txt" "${SCONCE_ONNX_PACKAGES}")
endfunction()
