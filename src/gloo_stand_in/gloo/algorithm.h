#pragma once

// LibTorch contains the Gloo code, but does not ship the Gloo headers. These five headers declare
// the parts that ProcessGroupGloo.hpp uses. Their virtual tables match the ones in the LibTorch
// build.
