#pragma once

#include "sconce/fwd.hpp"

/// Writes the loss to standard output, for which the host waits.
void print_loss(const torch::Tensor& loss);
