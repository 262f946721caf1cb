#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "training_data.hpp"

namespace train {

/// Reads the table at `--data`. The test part is a fraction of the rows, or of each class. Numbers,
/// including the target of a regression, are standardized so that the training rows have mean 0 and
/// deviation 1. If `known` is the task of a table, its means and deviations are used instead.
/// @throw UsageError naming the first difference if the target or the columns differ from `known`.
/// @throw c10::Error as `sconce::io::read_csv` does; also naming the target if all of its values
/// are the same, or a column whose name contains a line break.
/// @throw std::runtime_error if the test part would be empty.
TrainingData open_table(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                        const Task& known);

/// Reads rows as inputs of the task's model, (N, features). Additional columns in the file are
/// ignored.
/// @throw c10::Error as `sconce::io::read_csv` does.
at::Tensor read_rows(const std::filesystem::path& file, const Task& task,
                     const ReadingLimits& limits = {});

}  // namespace train
