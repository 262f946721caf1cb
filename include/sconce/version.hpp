#pragma once

// The version of sconce. CMake, pip, and Conan read it from this file, so it is not repeated
// anywhere else. The numbers are macros so that user code can test them with #if.
#define SCONCE_VERSION_MAJOR 0
#define SCONCE_VERSION_MINOR 3
#define SCONCE_VERSION_PATCH 0
/// "dev" until this version is released, and "" afterward.
#define SCONCE_VERSION_SUFFIX "dev"
