# Finds LibTorch and provides it as a single target, sconce::torch. This build and the installed package use the same
# file. Neither nvcc nor a CUDA toolkit is needed.
#
#   sconce_find_torch()   creates sconce::torch; sets SCONCE_TORCH_ROOT, SCONCE_TORCH_LIBRARIES_DIR,
#                         SCONCE_TORCH_IS_CUDA, and SCONCE_TORCH_BUILT_VERSION
#                         (global properties with these names keep the values for later calls)
#
# SCONCE_TORCH_VERSION, if set, requires exactly that version. SCONCE_TORCH_VARIANT, cpu or cuda, restricts which
# LibTorch is chosen automatically. A LibTorch that the user specifies is used regardless of its variant. An installed
# package sets SCONCE_TORCH_OF_BUILD to the LibTorch that it was built with, and sets SCONCE_TORCH_OF_BUILD_VARIANT. A
# build folder that is used as a package also sets SCONCE_TORCH_OF_BUILD_FIRST, so that this LibTorch comes before
# Python's. A package that is not required sets SCONCE_TORCH_OPTIONAL: if no LibTorch is found, sconce::torch is not
# created, and the global property SCONCE_TORCH_MISSING contains the reason.

# This is the only definition of the supported version range. The pinned wheel is the newest version.
set(SCONCE_TORCH_OLDEST 2.11.0)
set(SCONCE_TORCH_NEWEST 2.15.0)
if(NOT DEFINED SCONCE_TORCH_WANTED_BY)
  set(SCONCE_TORCH_WANTED_BY "SCONCE_TORCH_VERSION")
endif()

include_guard(GLOBAL) # placed below the variables, because each folder of a project needs them

# Stops the configure step with the given lines. The leading blanks prevent CMake from wrapping them. With
# SCONCE_TORCH_OPTIONAL, the function only stores the lines, and the caller must return.
function(sconce_stop)
  list(JOIN ARGN "\n  " text)
  if(SCONCE_TORCH_OPTIONAL)
    set_property(GLOBAL PROPERTY SCONCE_TORCH_MISSING "sconce: ${text}")
    return()
  endif()
  message(FATAL_ERROR "  sconce: ${text}")
endfunction()

# Returns from the calling function if sconce_stop stored its lines.
macro(sconce_return_if_missing)
  get_property(missing GLOBAL PROPERTY SCONCE_TORCH_MISSING)
  if(missing)
    return()
  endif()
endmacro()

# Upstream's package looks for a toolkit and enables the CUDA language unless these two targets exist. These targets may
# be empty, because the libraries store the paths to their CUDA libraries.
function(sconce_skip_toolkit)
  foreach(target torch::cudart torch::nvtoolsext)
    if(NOT TARGET ${target})
      add_library(${target} INTERFACE IMPORTED GLOBAL)
    endif()
  endforeach()
endfunction()

# Looks for LibTorch in the site-packages of <python>, without importing it. Sets <out> to torch's folder or to an empty
# string.
function(sconce_torch_of_python out python)
  set(${out} "" PARENT_SCOPE)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s and s.submodule_search_locations else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND EXISTS "${folder}/share/cmake/Torch/TorchConfig.cmake")
    file(TO_CMAKE_PATH "${folder}" folder)
    set(${out} "${folder}" PARENT_SCOPE)
  endif()
endfunction()

# Sets <out> to the root folder of the LibTorch that was loaded. A distribution installs the CMake package in
# lib/<architecture>.
function(sconce_root_of_torch out)
  string(REGEX REPLACE "/(share|lib[^/]*|lib/[^/]+)/cmake/Torch$" "" root "${Torch_DIR}")
  set(${out} "${root}" PARENT_SCOPE)
endfunction()

# Sets <package> to the folder that contains the CMake package for a LibTorch, and <libraries> to the folder that
# contains its libraries. Wheels and archives contain share/cmake/Torch and lib. Distributions use /usr as <root> and
# lib/<architecture> for both folders.
function(sconce_folders_of_torch package libraries root)
  cmake_path(SET shared NORMALIZE "${root}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/")
  cmake_path(GET shared PARENT_PATH shared)
  if(EXISTS "${shared}/cmake/Torch/TorchConfig.cmake")
    set(${package} "${shared}/cmake/Torch" PARENT_SCOPE)
    set(${libraries} "${shared}" PARENT_SCOPE)
  else()
    set(${package} "${root}/share/cmake/Torch" PARENT_SCOPE)
    set(${libraries} "${root}/lib" PARENT_SCOPE)
  endif()
endfunction()

# Sets <out> to the version that a LibTorch folder declares, without loading its package.
function(sconce_version_of_torch out folder)
  set(PACKAGE_VERSION "")
  sconce_folders_of_torch(package libraries "${folder}")
  include("${package}/TorchConfigVersion.cmake" OPTIONAL)
  set(${out} "${PACKAGE_VERSION}" PARENT_SCOPE)
endfunction()

# Sets <out> to the variant of a LibTorch folder, cpu or cuda, based on its Python package or, if there is none, on its
# libraries.
function(sconce_variant_of_torch out folder)
  set(cuda "")
  sconce_folders_of_torch(package libraries "${folder}")
  if(EXISTS "${folder}/version.py")
    file(STRINGS "${folder}/version.py" cuda REGEX "^cuda.*= *'")
  elseif(EXISTS "${libraries}/libtorch_cuda.so")
    set(cuda ON)
  endif()
  set(${out} cpu PARENT_SCOPE)
  if(cuda)
    set(${out} cuda PARENT_SCOPE)
  endif()
endfunction()

# Sets <out> to the version that pip installs: "2.15.0", or "2.15.0+cpu" with PyTorch's label for CPU wheels.
function(sconce_wanted_wheel out)
  set(version ${SCONCE_TORCH_NEWEST})
  if(DEFINED SCONCE_TORCH_VERSION)
    set(version ${SCONCE_TORCH_VERSION})
  endif()
  if("${SCONCE_TORCH_VARIANT}" STREQUAL "cpu")
    string(APPEND version "+cpu")
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Rejects an unknown variant, so that a typo does not cause a 3 GB download.
function(sconce_check_torch_variant)
  if(NOT "${SCONCE_TORCH_VARIANT}" MATCHES "^(cpu|cuda)?$")
    sconce_stop("SCONCE_TORCH_VARIANT is '${SCONCE_TORCH_VARIANT}', expected one of:"
                "  cpu       LibTorch without CUDA"
                "  cuda      LibTorch with CUDA"
                "  nothing   the first one found; if there is none, one with CUDA is installed")
  endif()
endfunction()

# Loads Torch's package from <folder>. If <folder> is empty, searches the locations that the user specified. This is a
# macro because the package sets variables that its caller must see.
macro(sconce_load_torch folder)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON) # a parent project must also see torch's targets
  sconce_skip_toolkit()
  # The package warns that the wheel contains no libkineto.a. Programs do not link this library, because it is part of
  # libtorch_cpu. Setting the variable to any existing target skips the search.
  set(kineto_LIBRARY c10)
  # The package caches the locations of its parts, and locations from an earlier LibTorch must not be reused.
  foreach(part Caffe2_DIR TORCH_LIBRARY c10_LIBRARY C10_CUDA_LIBRARY)
    unset(${part} CACHE)
  endforeach()
  if("${folder}" STREQUAL "")
    # sconce_find_torch searches the system's folders last.
    find_package(Torch CONFIG QUIET NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH)
  else()
    find_package(Torch CONFIG QUIET PATHS "${folder}" NO_DEFAULT_PATH)
  endif()
endmacro()

# Creates sconce::torch from the first LibTorch in this order: the one that the enclosing project found; the one that
# the user specifies with Torch_DIR or CMAKE_PREFIX_PATH; the active Python's torch; if sconce is the top-level project,
# the distribution's LibTorch (only for the cpu variant) and the pinned wheel in a virtual environment, and otherwise
# the system's LibTorch; and finally, the one that the installed sconce was built with.
function(sconce_find_torch)
  set(results SCONCE_TORCH_ROOT SCONCE_TORCH_LIBRARIES_DIR SCONCE_TORCH_IS_CUDA SCONCE_TORCH_BUILT_VERSION)
  set_property(GLOBAL PROPERTY SCONCE_TORCH_MISSING "")
  if(TARGET sconce::torch) # another folder in the project has already called this
    foreach(result IN LISTS results)
      get_property(kept GLOBAL PROPERTY ${result})
      set(${result} "${kept}" PARENT_SCOPE)
    endforeach()
    return()
  endif()
  sconce_check_torch_variant()
  sconce_return_if_missing()
  set(found_first OFF)
  if(TARGET torch)
    set(found_first ON)
    set(from "found by the project")
    find_package(Torch CONFIG QUIET)
  else()
    sconce_recall_torch(folder from)
    set(named "${Torch_DIR}") # set by the user, unless it comes from an earlier configure
    if(NOT folder)
      if(named AND NOT EXISTS "${named}/TorchConfig.cmake")
        sconce_stop("Torch_DIR is not a LibTorch: ${named} contains no TorchConfig.cmake"
                    "Set it to <libtorch>/share/cmake/Torch")
        sconce_return_if_missing()
      endif()
      sconce_load_torch("")
      set(from "named by Torch_DIR or CMAKE_PREFIX_PATH")
      if(Torch_FOUND AND NOT named)
        sconce_root_of_torch(folder)
      endif()
    endif()
    if(NOT Torch_FOUND)
      if(NOT folder)
        sconce_choose_torch(folder from)
        sconce_return_if_missing()
      endif()
      sconce_load_torch("${folder}")
    endif()
    if(folder)
      set(SCONCE_TORCH_CHOSEN "${folder}" CACHE INTERNAL "The LibTorch that sconce chose")
      set(SCONCE_TORCH_CHOSEN_FROM "${from}" CACHE INTERNAL "Where it was found")
      set(SCONCE_TORCH_CHOSEN_VARIANT "${SCONCE_TORCH_VARIANT}"
          CACHE INTERNAL "The variant that it was chosen for")
      set(SCONCE_TORCH_CHOSEN_PREFIX "${CMAKE_PREFIX_PATH}"
          CACHE INTERNAL "The CMAKE_PREFIX_PATH that it was chosen with")
    endif()
  endif()
  if(NOT Torch_FOUND)
    sconce_stop("LibTorch was found, but its package did not load: ${folder}"
                "Specify another one: -DTorch_DIR=<libtorch>/share/cmake/Torch")
    sconce_return_if_missing()
  endif()
  sconce_check_torch_version("${Torch_VERSION}" "${from}" "${Torch_DIR}")
  sconce_return_if_missing()
  sconce_make_torch_target(${found_first} "${from}")
  set(SCONCE_TORCH_BUILT_VERSION "${Torch_VERSION}")
  foreach(result IN LISTS results)
    set_property(GLOBAL PROPERTY ${result} "${${result}}")
    set(${result} "${${result}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Sets <folder> and <from> to the choice from an earlier configure of this build folder, so that configuring again does
# not search. Sets them to empty strings if that LibTorch no longer exists, if the user has since specified another one
# with Torch_DIR or a different CMAKE_PREFIX_PATH, or if a different version or variant is requested.
function(sconce_recall_torch folder from)
  set(${folder} "" PARENT_SCOPE)
  sconce_folders_of_torch(package libraries "${SCONCE_TORCH_CHOSEN}")
  if(NOT SCONCE_TORCH_CHOSEN OR NOT "${Torch_DIR}" STREQUAL "${package}")
    return()
  endif()
  sconce_version_of_torch(version "${SCONCE_TORCH_CHOSEN}")
  if(NOT EXISTS "${Torch_DIR}"
     OR (DEFINED SCONCE_TORCH_VERSION AND NOT version VERSION_EQUAL SCONCE_TORCH_VERSION)
     OR NOT "${SCONCE_TORCH_CHOSEN_VARIANT}" STREQUAL "${SCONCE_TORCH_VARIANT}"
     OR NOT "${SCONCE_TORCH_CHOSEN_PREFIX}" STREQUAL "${CMAKE_PREFIX_PATH}")
    unset(Torch_DIR CACHE) # otherwise, the search would end there
    return()
  endif()
  set(${folder} "${SCONCE_TORCH_CHOSEN}" PARENT_SCOPE)
  set(${from} "${SCONCE_TORCH_CHOSEN_FROM}" PARENT_SCOPE)
endfunction()

# Sets <out> to SCONCE_TORCH_OF_BUILD if it is still the LibTorch that the installed sconce was built with. Otherwise,
# sets <out> to an empty string and <state> to the reason.
function(sconce_torch_of_build out state)
  set(${out} "" PARENT_SCOPE)
  set(${state} "" PARENT_SCOPE)
  set(root "${SCONCE_TORCH_OF_BUILD}")
  if(NOT root)
    return()
  endif()
  sconce_folders_of_torch(package libraries "${root}")
  set(variant cpu)
  if(EXISTS "${libraries}/libtorch_cuda.so")
    set(variant cuda)
  endif()
  sconce_version_of_torch(version "${root}")
  if(NOT EXISTS "${package}/TorchConfig.cmake")
    set(${state} "is gone: ${root}" PARENT_SCOPE)
  elseif(NOT version VERSION_EQUAL SCONCE_TORCH_VERSION)
    set(${state} "is LibTorch ${version} now: ${root}" PARENT_SCOPE)
  elseif(NOT variant STREQUAL SCONCE_TORCH_OF_BUILD_VARIANT)
    set(${state} "is for ${variant} now, not for ${SCONCE_TORCH_OF_BUILD_VARIANT}: ${root}" PARENT_SCOPE)
  else()
    set(${out} "${root}" PARENT_SCOPE)
  endif()
endfunction()

# Chooses a LibTorch if the user did not specify one. Sets <folder> to its root and <from> to a description of its
# origin.
function(sconce_choose_torch folder from)
  sconce_torch_of_build(of_build state_of_build)
  if(of_build AND SCONCE_TORCH_OF_BUILD_FIRST)
    set(${folder} "${of_build}" PARENT_SCOPE)
    set(${from} "the one that sconce was built with" PARENT_SCOPE)
    return()
  endif()
  # The Python from an earlier configure may no longer be the active one. FindPython3 keeps it in the cache.
  if(NOT DEFINED Python3_EXECUTABLE)
    unset(_Python3_EXECUTABLE CACHE)
  endif()
  find_package(Python3 COMPONENTS Interpreter QUIET)
  set(seen "no Python 3")
  if(Python3_Interpreter_FOUND)
    sconce_torch_of_python(root "${Python3_EXECUTABLE}")
    set(seen "${Python3_EXECUTABLE} has no torch")
    if(root)
      sconce_version_of_torch(version "${root}")
      sconce_variant_of_torch(variant "${root}")
      set(seen "${Python3_EXECUTABLE} has torch ${version} for ${variant}")
      set(wanted ON)
      if(of_build) # preferred over a Python torch that would be rejected
        set(SCONCE_TORCH_VARIANT ${SCONCE_TORCH_OF_BUILD_VARIANT})
      endif()
      if(SCONCE_TORCH_VARIANT AND NOT variant STREQUAL SCONCE_TORCH_VARIANT)
        set(wanted OFF)
      elseif((sconce_IS_TOP_LEVEL OR of_build) AND (version VERSION_LESS SCONCE_TORCH_OLDEST
         OR (DEFINED SCONCE_TORCH_VERSION AND NOT version VERSION_EQUAL SCONCE_TORCH_VERSION)))
        set(wanted OFF)
      endif()
      if(NOT wanted)
        message(STATUS "sconce: Python's torch ${version} for ${variant} is not the requested one"
                       " and is skipped")
      else()
        set(${folder} "${root}" PARENT_SCOPE)
        set(${from} "Python's torch" PARENT_SCOPE)
        return()
      endif()
    endif()
  endif()
  if(sconce_IS_TOP_LEVEL)
    if("${SCONCE_TORCH_VARIANT}" STREQUAL "cpu")
      include(SconceTorchOfDistribution)
      sconce_torch_of_distribution(root)
      if(root)
        set(${folder} "${root}" PARENT_SCOPE)
        set(${from} "the distribution's" PARENT_SCOPE)
        return()
      endif()
    endif()
    include(SconceVenv)
    sconce_torch_of_venv(root)
    set(${folder} "${root}" PARENT_SCOPE)
    set(${from} "pinned wheel" PARENT_SCOPE)
    return()
  endif()
  set(exactly "")
  if(of_build)
    set(exactly ${SCONCE_TORCH_VERSION} EXACT)
  endif()
  find_package(Torch ${exactly} CONFIG QUIET)
  if(Torch_FOUND)
    sconce_root_of_torch(root)
    set(${folder} "${root}" PARENT_SCOPE)
    set(${from} "the system's" PARENT_SCOPE)
    return()
  endif()
  if(of_build)
    set(${folder} "${of_build}" PARENT_SCOPE)
    set(${from} "the one that sconce was built with" PARENT_SCOPE)
    return()
  endif()
  if(state_of_build)
    string(PREPEND state_of_build "The LibTorch that sconce was built with ")
  endif()
  sconce_wanted_wheel(wheel)
  sconce_stop("no LibTorch ${SCONCE_TORCH_OLDEST} to ${SCONCE_TORCH_NEWEST} found"
              "Looked in: Torch_DIR, CMAKE_PREFIX_PATH, Python (${seen}), the system's folders."
              ${state_of_build}
              "To fix this, use one of:"
              "  pip install torch==${wheel}      in the active Python environment"
              "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
endfunction()

# Rejects a LibTorch that is too old or differs from the requested version. Warns about an untested newer version.
function(sconce_check_torch_version version from where)
  if(DEFINED SCONCE_TORCH_VERSION AND NOT version VERSION_EQUAL SCONCE_TORCH_VERSION)
    sconce_stop("LibTorch ${SCONCE_TORCH_VERSION} is required (${SCONCE_TORCH_WANTED_BY}), found ${version}"
                "Found: ${where} (${from}). To fix this:"
                "  specify the other LibTorch: cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
  elseif(version VERSION_LESS SCONCE_TORCH_OLDEST)
    sconce_stop("LibTorch ${version} is too old: ${SCONCE_TORCH_OLDEST} to ${SCONCE_TORCH_NEWEST} are supported"
                "Found: ${where} (${from})"
                "sconce calls operators and classes that came with ${SCONCE_TORCH_OLDEST}. To fix this, use one of:"
                "  pip install torch==${SCONCE_TORCH_NEWEST}      in the active Python environment"
                "  cmake -DTorch_DIR=<libtorch>/share/cmake/Torch ...")
  elseif(version VERSION_GREATER SCONCE_TORCH_NEWEST)
    message(WARNING "sconce: LibTorch ${version} is newer than ${SCONCE_TORCH_NEWEST}, the newest one tested")
  endif()
endfunction()

# Warns about CUDA libraries that LibTorch needs but that are missing on this machine. Otherwise, the linker would print
# hundreds of lines about them. The driver libraries are excluded, because they are missing on any machine without a
# GPU.
function(sconce_check_cuda_libraries root libraries_dir)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  execute_process(COMMAND ldd "${libraries_dir}/libtorch_cuda.so" OUTPUT_VARIABLE libraries ERROR_QUIET)
  string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${libraries}")
  list(TRANSFORM missing REPLACE " => not found" "")
  list(FILTER missing EXCLUDE REGEX "^lib(cuda|nvidia-ml)\\.so")
  if(missing)
    list(JOIN missing " " missing)
    message(WARNING # the leading blanks keep CMake from wrapping the lines
      "  sconce: the LibTorch in ${root} needs CUDA libraries that are missing: ${missing}\n"
      "  To fix this, use one of:\n"
      "    pip install torch==${Torch_VERSION}      with the packages that it requires\n"
      "    LD_LIBRARY_PATH=<the folder of the libraries> cmake ...")
  endif()
endfunction()

# Sets <out> to the Gloo library that a distribution's LibTorch loads, because sconce::distributed also calls this
# library. Sets <out> to an empty string for any other LibTorch, because its libtorch_cpu contains Gloo.
function(sconce_gloo_of_torch out root libraries_dir)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_CROSSCOMPILING OR libraries_dir STREQUAL "${root}/lib")
    return()
  endif()
  execute_process(COMMAND ldd "${libraries_dir}/libtorch_cpu.so" OUTPUT_VARIABLE loaded ERROR_QUIET)
  if(loaded MATCHES "libgloo[^ ]* => (/[^ ]+)")
    set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

# Creates the target and prints one line about the LibTorch that was found.
function(sconce_make_torch_target found_first from)
  sconce_root_of_torch(root)
  sconce_folders_of_torch(package libraries "${root}")
  add_library(sconce::torch INTERFACE IMPORTED GLOBAL)
  # The C++ standard library comes first. The LibTorch libraries export parts of it (2.11.0 exports all of
  # std::filesystem, but calls to these symbols do not work), and a program uses each symbol from the first library that
  # provides it.
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_libraries(sconce::torch INTERFACE
      "-Wl,--push-state,--no-as-needed,-lstdc++,--pop-state")
  endif()
  # Links torch_library instead of torch, because that wrapper keeps libtorch_cuda linked even if none of its symbols is
  # used. A program with the property SCONCE_CPU, which sconce_bundle sets, is compiled in the same way and linked
  # without libtorch_cuda.
  target_link_libraries(sconce::torch INTERFACE
    "$<IF:$<BOOL:$<TARGET_PROPERTY:SCONCE_CPU>>,$<LINK_ONLY:torch_cpu_library>,torch_library>")
  foreach(property IN ITEMS COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES SYSTEM_INCLUDE_DIRECTORIES)
    set_property(TARGET sconce::torch PROPERTY
      INTERFACE_${property} "$<TARGET_PROPERTY:torch_library,INTERFACE_${property}>")
  endforeach()
  sconce_gloo_of_torch(gloo "${root}" "${libraries}")
  target_link_libraries(sconce::torch INTERFACE ${gloo})
  target_compile_features(sconce::torch INTERFACE cxx_std_20)
  # If LibTorch uses MKL, upstream adds folders such as /lib/intel64 here. Every program would then contain these
  # folders as run paths.
  if(NOT found_first AND TARGET caffe2::mkl AND NOT MKL_ROOT)
    set_property(TARGET caffe2::mkl PROPERTY INTERFACE_LINK_DIRECTORIES "")
  endif()
  set(is_cuda OFF)
  set(kind "CPU")
  if(TARGET torch_cuda)
    set(is_cuda ON)
    set(kind "CUDA")
    sconce_check_cuda_libraries("${root}" "${libraries}")
  endif()
  message(STATUS "sconce: LibTorch ${Torch_VERSION}, ${kind} (${from}: ${root})")
  set(SCONCE_TORCH_ROOT "${root}" PARENT_SCOPE)
  set(SCONCE_TORCH_LIBRARIES_DIR "${libraries}" PARENT_SCOPE)
  set(SCONCE_TORCH_IS_CUDA "${is_cuda}" PARENT_SCOPE)
endfunction()
