# find_package(sconce) with the wheel: the sources are compiled in the project's own build, against the LibTorch found
# there. Only the layers that are linked are built.
if(NOT TARGET sconce::sconce)
  block()
    if(NOT DEFINED CMAKE_UNITY_BUILD)
      set(CMAKE_UNITY_BUILD ON) # the sources of sconce compile in a quarter of the time
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
        "no component '${component}': there are core, data, distributed, io, report, training and vision")
  endif()
endforeach()
