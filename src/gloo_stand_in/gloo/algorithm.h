#pragma once

// LibTorch contains Gloo's code, but does not ship its headers. These five headers declare the
// parts that ProcessGroupGloo.hpp uses, with the same virtual tables that LibTorch was built with.
