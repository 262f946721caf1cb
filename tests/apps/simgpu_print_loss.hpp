#pragma once

#include "sconce/fwd.hpp"

/// Writes the loss to standard output, which forces the host to wait.
void print_loss(const torch::Tensor& loss);
