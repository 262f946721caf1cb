#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "sconce/report/summary_writer.hpp"

namespace sconce::utils::tensorboard {

/// Counts the values in a tensor as described for `SummaryWriter::add_histogram`. Python:
/// `torch.utils.tensorboard.summary.make_histogram`.
/// @throw c10::Error with the prefix `caller` on failure.
RawHistogram make_histogram(const std::string& caller, const at::Tensor& values,
                            const AddHistogramOptions& options);

}  // namespace sconce::utils::tensorboard
