#pragma once

#include "sconce/report/environment.hpp"

namespace sconce::test {

// Returns the environment of a fully functional machine with one GPU.
inline Environment fake_environment() {
  return {.torch = {.version = "2.15.0",
                    .built_with_cuda = true,
                    .cuda_loaded = true,
                    .cuda = "13.2",
                    .num_gpus = 1},
          .driver = {.version = "580.1",
                     .cuda = "13.0",
                     .gpus = {{.index = 0, .name = "H", .memory_total = int64_t{1} << 30}}}};
}

}  // namespace sconce::test
