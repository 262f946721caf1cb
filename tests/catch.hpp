#pragma once

// Tests include LibTorch and Catch2 only through this header, because LibTorch's logging and Catch2
// both define CHECK. In tests, CHECK is the Catch2 macro.
#include <torch/torch.h>

#undef CHECK

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
