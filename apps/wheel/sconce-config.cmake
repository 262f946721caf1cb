# find_package(sconce) with the wheel: the sources are compiled as part of the project's own build, against the LibTorch
# that the project finds. Only layers that the project links to are built.
set(sconce_FOUND OFF)
get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "CXX" IN_LIST languages)
  set(sconce_NOT_FOUND_MESSAGE
      "its sources are compiled as part of this project, but the project has no C++ compiler: project(${CMAKE_PROJECT_NAME} LANGUAGES CXX) before find_package(sconce)")
  return()
elseif(NOT "cxx_std_20" IN_LIST CMAKE_CXX_COMPILE_FEATURES)
  set(sconce_NOT_FOUND_MESSAGE
      "it requires a C++20 compiler, but ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}: specify another one with -DCMAKE_CXX_COMPILER=<compiler>")
  return()
endif()
if(NOT TARGET sconce::sconce)
  block()
    if(NOT DEFINED CMAKE_UNITY_BUILD)
      set(CMAKE_UNITY_BUILD ON) # sconce's sources then compile in a quarter of the time
    endif()
    add_subdirectory("${CMAKE_CURRENT_LIST_DIR}/../source" "${CMAKE_BINARY_DIR}/sconce"
                     EXCLUDE_FROM_ALL SYSTEM)
  endblock()
endif()
set(sconce_FOUND ON)
foreach(component IN LISTS sconce_FIND_COMPONENTS)
  if(TARGET sconce::${component})
    set(sconce_${component}_FOUND ON)
  elseif(sconce_FIND_REQUIRED_${component})
    set(sconce_FOUND OFF)
    set(sconce_NOT_FOUND_MESSAGE
        "no component '${component}': the components are core, capture, data, distributed, io, program, report, training, and vision")
  endif()
endforeach()
