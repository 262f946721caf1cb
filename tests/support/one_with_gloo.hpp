#pragma once

#include "sconce/distributed/process_group.hpp"

namespace sconce::test {

/// Returns a Gloo group of one process, in which gradients and metrics actually go through the
/// backend.
inline distributed::ProcessGroup one_with_gloo() {
  return distributed::ProcessGroup::init(
      {.backend = "gloo", .init_method = "tcp://127.0.0.1:1", .world_size = 1, .rank = 0});
}

}  // namespace sconce::test
