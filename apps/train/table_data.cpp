#include "table_data.hpp"

#include <c10/util/StringUtil.h>
#include <torch/types.h>

#include <algorithm>
#include <iterator>

#include "model_file.hpp"

namespace train {

namespace {

using sconce::data::Dataset;
using sconce::io::CsvColumn;

// Uses the task's means and standard deviations, starting at index `first`. Computes in float64 to
// preserve small differences between large values.
torch::Tensor standardized(const torch::Tensor& values, const Task& task, int64_t first = 0) {
  const auto row = [&](const std::vector<double>& numbers) {
    return torch::tensor(numbers, torch::kDouble).slice(0, first, first + values.size(1));
  };
  return values.to(torch::kDouble).sub_(row(task.mean)).div_(row(task.std)).to(torch::kFloat);
}

bool is_constant(const torch::Tensor& values) {
  return values.min().equal(values.max());
}

// Appends the mean and the standard deviation of a column. The standard deviation of a constant
// column is set to 1.
void add_figures(Task& task, const torch::Tensor& column) {
  const auto values = column.to(torch::kDouble);
  const bool varies = !is_constant(values);
  task.mean.push_back((varies ? values.mean() : values.max()).item<double>());
  task.std.push_back(varies ? values.std().item<double>() : 1);
}

// Category columns keep their values of 0 and 1.
void measure_columns(Task& task, const Dataset& train) {
  for (const CsvColumn& column : task.columns) {
    if (column.name == task.target) continue;
    task.mean.resize(task.mean.size() + column.categories.size(), 0);
    task.std.resize(task.mean.size(), 1);
    if (column.categories.empty()) add_figures(task, train.data.select(1, std::ssize(task.mean)));
  }
  if (task.is_regression()) add_figures(task, train.target);
}

// A line break would end the name in the weights' metadata.
void check_table(const CommandLine& line, const at::Tensor& target, const Task& task) {
  const std::string names = c10::Join("", column_lines(task.columns));
  TORCH_CHECK(names.find('\n') == names.npos, "--data: ", line.data,
              ": expected names and categories without line breaks");
  TORCH_CHECK(!is_constant(target), "--target: ", line.data,
              ": expected at least two distinct values in column '", line.target, "', found only ",
              task.is_regression() ? c10::str(target[0].item<double>()) : task.classes[0]);
}

void check_run(const CommandLine& line, const Task& task, const Task& known) {
  const std::string run = "the run in " + line.checkpoint.string() + " has ";
  if (task.target != known.target) {
    throw UsageError("--target: " + run + known.target + ", not " + task.target);
  }
  const auto now = column_lines(task.columns), saved = column_lines(known.columns);
  const auto [a, b] = std::mismatch(saved.begin(), saved.end(), now.begin(), now.end());
  if (a == saved.end() && b == now.end()) return;
  throw UsageError("--data: " + run + (a == saved.end() ? "no more columns" : *a) + " where " +
                   line.data + " has " + (b == now.end() ? "no more columns" : *b));
}

}  // namespace

TrainingData open_table(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                        const Task& known) {
  const auto table = sconce::io::read_csv(line.data, {.target = line.target,
                                                      .categories = line.categories,
                                                      .drop = line.drop,
                                                      .skip_bad = line.skip_bad,
                                                      .max_bytes = line.limits.csv_bytes});
  Task task = task_of_table(table.columns, line.target);
  check_table(line, table.target, task);
  if (known.is_table()) {
    check_run(line, task, known);
    task = known;
  }
  const auto classes = task.is_regression() ? torch::zeros(table.target.size(0), torch::kLong)
                                            : table.target.contiguous();
  const auto order = classes.argsort(/*stable=*/true);
  const auto* first = order.const_data_ptr<int64_t>();
  const auto split =
      split_examples(classes, {first, first + order.size(0)}, line.test_fraction, line.seed);
  const auto part = [&](const std::vector<int64_t>& rows) {
    const auto chosen = torch::tensor(rows, torch::kLong);
    return Dataset{table.data.index_select(0, chosen), table.target.index_select(0, chosen)};
  };
  Dataset train = part(split.train), test = part(split.test);
  if (!known.is_table()) measure_columns(task, train);
  for (Dataset* rows : {&train, &test}) {
    rows->data = standardized(rows->data, task);
    if (task.is_regression()) rows->target = standardized(rows->target, task, task.shape[0]);
  }
  TrainingData data = in_memory(line, group, task, train, test);
  data.left_out = table.skipped;
  return data;
}

at::Tensor read_rows(const std::filesystem::path& file, const Task& task,
                     const ReadingLimits& limits) {
  std::vector<CsvColumn> columns = task.columns;
  std::erase_if(columns, [&](const CsvColumn& column) { return column.name == task.target; });
  const auto table =
      sconce::io::read_csv(file, {.max_bytes = limits.csv_bytes, .columns = columns});
  return standardized(table.data, task);
}

}  // namespace train
