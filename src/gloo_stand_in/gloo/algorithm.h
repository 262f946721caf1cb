#pragma once

// Gloo's code lies in LibTorch, its headers do not come with it. These five declare what
// ProcessGroupGloo.hpp names, with the layout of virtual functions that LibTorch was built with.
