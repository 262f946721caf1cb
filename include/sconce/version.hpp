#pragma once

// The version of sconce. CMakeLists.txt reads it from here, so it is written in no other place.
// These are macros so that user code can test them with #if.
#define SCONCE_VERSION_MAJOR 0
#define SCONCE_VERSION_MINOR 2
#define SCONCE_VERSION_PATCH 0
