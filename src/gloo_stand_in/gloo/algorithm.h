#pragma once

// LibTorch contains Gloo's code, but not its headers. These five headers declare what
// ProcessGroupGloo.hpp uses, with the virtual tables that LibTorch was built with.
