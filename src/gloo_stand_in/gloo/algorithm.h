#pragma once

// LibTorch contains Gloo's code, but does not ship its headers. These five headers declare the
// parts that ProcessGroupGloo.hpp uses. Their virtual tables match the ones in LibTorch's build.
