#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "training_data.hpp"

namespace train {

/// Reads the table at `--data`. The test part is a fraction of the rows, or of the rows in each
/// class. Numbers, including the target of a regression, are standardized so that the training rows
/// have a mean of 0 and a deviation of 1. If `known` is the task of a table, the means and
/// deviations in it are used instead.
/// @throw UsageError with the first difference if the target or the columns differ from `known`.
/// @throw c10::Error as `sconce::io::read_csv` does. Also thrown, with the name of the column, if
/// all values of the target are the same or if a column name contains a line break.
/// @throw std::runtime_error if the test part would be empty.
TrainingData open_table(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                        const Task& known);

/// Reads rows as inputs for the task's model, (N, features). Additional columns in the file are
/// ignored.
/// @throw c10::Error as `sconce::io::read_csv` does.
at::Tensor read_rows(const std::filesystem::path& file, const Task& task,
                     const ReadingLimits& limits = {});

}  // namespace train
