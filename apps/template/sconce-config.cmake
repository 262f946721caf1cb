# Is read only if CMake finds no sconce.
unset(sconce_DIR CACHE) # so that the next try searches again
message(FATAL_ERROR "  sconce: not found. Run in its folder: cmake --workflow --preset demo   and configure with -Dsconce_DIR=<its folder>/build/default")
