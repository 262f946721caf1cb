# CMake reads this file only if it does not find sconce.
unset(sconce_DIR CACHE) # so that CMake searches again the next time
message(FATAL_ERROR "  sconce: not found. Run in its folder: cmake --workflow --preset demo   and configure with -Dsconce_DIR=<its folder>/build/default")
