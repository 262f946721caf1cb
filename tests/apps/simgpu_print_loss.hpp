#pragma once

#include "sconce/fwd.hpp"

/// Writes the loss to standard output, which makes the host wait.
void print_loss(const torch::Tensor& loss);
