#pragma once

#include <torch/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fail.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/vision/image.hpp"

namespace train {

/// The limits on the files that the program reads.
struct ReadingLimits {
  std::optional<int64_t> csv_bytes = {};  ///< `sconce::io::CsvOptions::max_bytes`
  sconce::vision::ImageLimits image = {};
};

/// The arguments of `sconce-train predict`.
struct PredictLine {
  std::filesystem::path weights = {};
  std::vector<std::filesystem::path> files = {};  ///< paths of images or tables
  ReadingLimits limits = {};
};

/// The validated arguments of sconce-train. The flags are described in flags.inc.
struct CommandLine {
#define GROUP(title)
#define FLAG(type, member, value, ...) type member = value;
#define FLAG_OF(member, ...)
#include "flags.inc"
#undef FLAG_OF
#undef FLAG
#undef GROUP
  ReadingLimits limits = {};
  std::optional<PredictLine> predict = {};  ///< set to predict instead of training
  std::string help = {};                    ///< the output of --help or --version, if requested

  /// Returns the device to train on. "auto" means the process group's device.
  torch::Device torch_device(const sconce::distributed::ProcessGroup& group = {}) const;
  sconce::amp::Precision amp_precision() const;
  double learning_rate() const;  ///< `lr`, or the default of the optimizer
};

/// Returns the valid values of `--precision`.
const std::vector<std::string>& precision_names();

using apps::UsageError;

/// Throws the error for an invalid command line, using the first line of the text as the message.
[[noreturn]] void refuse(const std::string& what);

/// Parses and checks the command line.
/// @throw UsageError
CommandLine parse_command_line(int argc, const char* const* argv);

/// Returns a library error in which the names of limit options are replaced with the names of the
/// flags.
std::string with_flags(std::string error);

}  // namespace train
