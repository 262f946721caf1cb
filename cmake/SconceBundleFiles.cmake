# The part of sconce_bundle that runs during the installation: copies the libraries and the licenses. The script that
# includes this file sets
#   bundle_name, bundle_program   the name of the bundle, and the built program
#   bundle_is_cpu                 whether libtorch_cuda must stay out
#   bundle_build, bundle_torch    the build folder, and the folder of LibTorch
#   bundle_strip                  the program strip

# Libraries that every machine brings because they must fit its kernel, its loader, or its GPU's driver.
set(bundle_of_machine "^ld-linux" "^lib(c|m|mvec|dl|pthread|rt|util|resolv)[.]so" "^libcuda[.]so" "^libnvidia-")

function(sconce_bundle_files)
  set(libraries_folder "${CMAKE_INSTALL_PREFIX}/lib/${bundle_name}")
  set(licenses_folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/${bundle_name}/licenses")
  file(REMOVE_RECURSE "$ENV{DESTDIR}${libraries_folder}" "${licenses_folder}") # of an earlier installation
  sconce_bundle_find_libraries(libraries)
  file(INSTALL ${libraries} DESTINATION "${libraries_folder}" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
  foreach(library IN LISTS libraries)
    cmake_path(GET library FILENAME name)
    sconce_bundle_finish_library("${library}" "$ENV{DESTDIR}${libraries_folder}/${name}")
  endforeach()
  sconce_bundle_licenses("${libraries}" "${licenses_folder}")
endfunction()

# Sets <out> to the libraries that the program needs, directly or indirectly, and those that they open by name.
function(sconce_bundle_find_libraries out)
  sconce_bundle_needed(libraries "")
  set(opened "")
  foreach(library IN LISTS libraries)
    cmake_path(GET library PARENT_PATH folder)
    if(library MATCHES "/libtorch_cuda[.]so$")
      if(bundle_is_cpu)
        message(FATAL_ERROR "sconce_bundle: CPU: expected a program that does not need libtorch_cuda.so; "
                            "a shared library of the project that is linked to sconce needs it")
      endif()
      file(GLOB found "${folder}/libtorch_cuda_linalg.so" "${folder}/libcaffe2_nvrtc.so")
      list(APPEND opened ${found})
    elseif(library MATCHES "/libcudnn[.]so")
      file(GLOB found "${folder}/libcudnn_*.so*")
      list(APPEND opened ${found})
    elseif(library MATCHES "/libnvrtc[.]so")
      file(GLOB found "${folder}/libnvrtc-builtins.so*")
      list(APPEND opened ${found})
    endif()
  endforeach()
  if(opened)
    sconce_bundle_needed(libraries "${opened}")
    list(APPEND libraries ${opened})
    list(REMOVE_DUPLICATES libraries)
  endif()
  set(${out} "${libraries}" PARENT_SCOPE)
endfunction()

# Sets <out> to the libraries that the program and the libraries <opened> need.
function(sconce_bundle_needed out opened)
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${bundle_program}" LIBRARIES ${opened}
    RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing PRE_EXCLUDE_REGEXES ${bundle_of_machine})
  if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "sconce_bundle: expected all libraries of ${bundle_program}, did not find ${missing}")
  endif()
  set(libraries "")
  foreach(library IN LISTS found) # found by a run path such as torch/lib/../../nvidia
    cmake_path(NORMAL_PATH library)
    list(APPEND libraries "${library}")
  endforeach()
  set(${out} "${libraries}" PARENT_SCOPE)
endfunction()

# Strips a copied library of LibTorch if the installation strips, and removes a run path that names folders of this
# machine. NVIDIA's libraries stay as NVIDIA made them, and the distribution's are stripped already.
function(sconce_bundle_finish_library library copy)
  string(FIND "${library}" "${bundle_torch}/" of_torch)
  if(CMAKE_INSTALL_DO_STRIP AND of_torch EQUAL 0)
    file(REAL_PATH "${copy}" real)
    execute_process(COMMAND "${bundle_strip}" --strip-unneeded "${real}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(READ_ELF "${copy}" RPATH old RUNPATH new CAPTURE_ERROR error)
  if("${old}:${new}" MATCHES "(^|[:;])/")
    file(RPATH_REMOVE FILE "${copy}") # the program's run path serves its libraries too
  endif()
endfunction()

# Copies the licenses of sconce and of the packages that the libraries come from: wheels, or the distribution's.
function(sconce_bundle_licenses libraries folder)
  foreach(place IN ITEMS "" "/..") # installed, or in the sources
    if(EXISTS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}${place}/LICENSE")
      file(COPY "${CMAKE_CURRENT_FUNCTION_LIST_DIR}${place}/LICENSE" DESTINATION "${folder}/sconce")
    endif()
  endforeach()
  foreach(library IN LISTS libraries)
    string(FIND "${library}" "${bundle_build}/" of_project)
    if(of_project EQUAL 0)
      continue()
    endif()
    sconce_bundle_wheel_of(wheel "${library}")
    sconce_bundle_package_of(package "${library}")
    if(wheel)
      cmake_path(GET wheel STEM LAST_ONLY name)
      file(GLOB licenses "${wheel}/licenses/*" "${wheel}/LICENSE*" "${wheel}/License*" "${wheel}/NOTICE*")
      if(NOT EXISTS "${folder}/${name}")
        file(COPY ${licenses} DESTINATION "${folder}/${name}")
      endif()
    elseif(package)
      sconce_bundle_debian_license(${package} "${folder}")
    else()
      message(WARNING "sconce_bundle: found no license of ${library}. Install it to share/doc/${bundle_name}/licenses")
    endif()
  endforeach()
endfunction()

# Sets <out> to the folder with the metadata of the Python wheel that contains the library, or to nothing.
function(sconce_bundle_wheel_of out library)
  set(${out} "" PARENT_SCOPE)
  cmake_path(GET library PARENT_PATH site)
  foreach(level RANGE 3)
    cmake_path(GET site PARENT_PATH site)
    file(GLOB records "${site}/*.dist-info/RECORD")
    cmake_path(RELATIVE_PATH library BASE_DIRECTORY "${site}" OUTPUT_VARIABLE inside)
    foreach(record IN LISTS records)
      file(READ "${record}" text)
      string(FIND "\n${text}" "\n${inside}," place)
      if(NOT place EQUAL -1)
        cmake_path(GET record PARENT_PATH wheel)
        set(${out} "${wheel}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# Sets <out> to the Debian package that contains the library, or to nothing.
function(sconce_bundle_package_of out library)
  set(${out} "" PARENT_SCOPE)
  file(REAL_PATH "${library}" real)
  string(REGEX REPLACE "^/usr/" "/" without_usr "${real}") # /lib may be a link to /usr/lib
  foreach(path IN ITEMS "${real}" "${without_usr}")
    execute_process(COMMAND dpkg-query -S "${path}" OUTPUT_VARIABLE answer ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND answer MATCHES "^([^:, ]+)")
      set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Copies the license of a Debian package, and the common licenses that it refers to.
function(sconce_bundle_debian_license package folder)
  set(copyright "/usr/share/doc/${package}/copyright")
  if(NOT EXISTS "${copyright}")
    message(WARNING "sconce_bundle: found no ${copyright}. Install it to share/doc/${bundle_name}/licenses")
    return()
  endif()
  file(COPY "${copyright}" DESTINATION "${folder}/${package}" FOLLOW_SYMLINK_CHAIN)
  file(READ "${copyright}" text)
  string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z]+(-[0-9]+([.][0-9]+)*)?" licenses "${text}")
  foreach(license IN LISTS licenses)
    file(COPY "${license}" DESTINATION "${folder}/common-licenses" FOLLOW_SYMLINK_CHAIN)
  endforeach()
endfunction()
