#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "training_data.hpp"

namespace train {

/// Reads the table that `--data` names. The test part has a fraction of the rows, or of each class.
/// Numbers are standardized so that the training rows have mean 0 and deviation 1, the target of a
/// regression too; if `known` is the task of a table, by its figures.
/// @throw UsageError if target or columns are not those of `known`, naming the first that differs.
/// @throw c10::Error as `sconce::io::read_csv`, or naming the target if all of its values are the
/// same, or a column with a line break in a name.
/// @throw std::runtime_error if the test part would be empty.
TrainingData open_table(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                        const Task& known);

/// Reads rows as inputs of the task's model, (N, features). Other columns of the file are ignored.
/// @throw c10::Error as `sconce::io::read_csv`.
at::Tensor read_rows(const std::filesystem::path& file, const Task& task,
                     const ReadingLimits& limits = {});

}  // namespace train
