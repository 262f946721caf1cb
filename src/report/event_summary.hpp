#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string>

#include "sconce/report/summary_writer.hpp"

/// These functions return the summaries in an event file, which are messages from TensorBoard's
/// summary.proto, as a field of an event. Python: `torch.utils.tensorboard.summary`.
namespace sconce::utils::tensorboard {

std::string scalar(const std::string& tag, float value);

/// `pixels` is a uint8 tensor (H, W, C).
std::string image(const std::string& tag, const at::Tensor& pixels);

std::string histogram(const std::string& tag, const RawHistogram& counted);

std::string text(const std::string& tag, const std::string& markdown);

/// Returns the description of an experiment, and the start and end of one of its sessions.
std::array<std::string, 3> hparams(const HParams& values,
                                   const std::vector<std::pair<std::string, double>>& metrics,
                                   const std::map<std::string, std::vector<HParam>>& domains);

}  // namespace sconce::utils::tensorboard
