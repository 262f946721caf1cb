#pragma once

// The version of sconce. CMake, pip, and Conan read it from here, so it is written in no other
// place. The numbers are macros so that user code can test them with #if.
#define SCONCE_VERSION_MAJOR 0
#define SCONCE_VERSION_MINOR 3
#define SCONCE_VERSION_PATCH 0
/// "dev" until the release of this version, and then "".
#define SCONCE_VERSION_SUFFIX "dev"
