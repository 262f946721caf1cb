#pragma once

// The version of sconce. CMakeLists.txt reads it from here; it is told nowhere else.
// Macros, so that a user's code can ask for it with #if.
#define SCONCE_VERSION_MAJOR 0
#define SCONCE_VERSION_MINOR 1
#define SCONCE_VERSION_PATCH 0
