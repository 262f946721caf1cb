# Finds a LibTorch installed by a distribution, such as Debian's libtorch-dev, for builds without CUDA.

include_guard(GLOBAL)

# Sets <out> to the system folder, such as /usr, that contains a LibTorch with the requested variant and version, or to
# an empty string. Reports each LibTorch that it skips. Does not load any package, because the targets of a rejected
# package would remain defined.
function(sconce_torch_of_distribution out)
  set(${out} "" PARENT_SCOPE)
  set(wanted "${SCONCE_TORCH_OLDEST} or newer")
  if(DEFINED SCONCE_TORCH_VERSION)
    set(wanted "${SCONCE_TORCH_VERSION}")
  endif()
  foreach(root IN LISTS CMAKE_SYSTEM_PREFIX_PATH)
    sconce_folders_of_torch(package libraries "${root}")
    if(NOT EXISTS "${package}/TorchConfig.cmake")
      continue()
    endif()
    sconce_version_of_torch(version "${root}")
    sconce_variant_of_torch(variant "${root}")
    if(variant STREQUAL SCONCE_TORCH_VARIANT AND NOT version VERSION_LESS SCONCE_TORCH_OLDEST
       AND (NOT DEFINED SCONCE_TORCH_VERSION OR version VERSION_EQUAL SCONCE_TORCH_VERSION))
      set(${out} "${root}" PARENT_SCOPE)
      return()
    endif()
    message(STATUS "sconce: the distribution's LibTorch ${version} for ${variant} is skipped, because ${wanted} for"
                   " ${SCONCE_TORCH_VARIANT} is requested: ${package}")
  endforeach()
endfunction()
