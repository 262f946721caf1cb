#include "reports.hpp"

#include <filesystem>

#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/regression.hpp"

namespace train {

namespace {

// Returns the last component of a path, because the whole path would be too long for a title.
std::string name_of_data(const std::string& data) {
  const auto path = std::filesystem::absolute(data).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

// The mean absolute error of a standardized target, in the target's original units.
struct ErrorOfTarget : sconce::metrics::MeanAbsoluteError {
  explicit ErrorOfTarget(double std) : unit(std) {}
  at::Tensor compute(const at::Tensor& sums) const override {
    return MeanAbsoluteError::compute(sums) * unit;
  }
  double unit;
};

}  // namespace

Reports::Reports(const CommandLine& line, const Task& task, std::ostream& out)
    : bar_(out, {.live_loss = line.live_loss}) {
  if (task.is_regression()) target_std_ = task.std.back();
  const auto classes = static_cast<int64_t>(task.classes.size());
  if (classes >= 2 && classes <= 100) {
    matrix_ = std::make_shared<sconce::metrics::ConfusionMatrix>(
        sconce::metrics::ConfusionMatrixOptions{.num_classes = classes});
  }
  if (!line.out.empty()) add_charts(line, task);
  if (!line.scalars.empty()) {
    scalars_.emplace(line.scalars, sconce::ScalarLogOptions{.every_n_steps = line.scalars_every,
                                                            .resume = line.resume});
  }
  if (line.profile > 0) trace_.emplace(line.out / trace_name, line.profile);
}

void Reports::add_charts(const CommandLine& line, const Task& task) {
  curve_.emplace(line.out / curve_name, line.model + " on " + name_of_data(line.data));
  if (matrix_) confusion_.emplace(line.out / confusion_name, matrix_, task.classes);
}

sconce::Metrics Reports::metrics() const {
  if (target_std_) {
    return {{"mae", std::make_shared<ErrorOfTarget>(*target_std_)},
            {"r2", std::make_shared<sconce::metrics::R2Score>()}};
  }
  sconce::Metrics all = {{"acc", std::make_shared<sconce::metrics::Accuracy>()}};
  if (matrix_) all.emplace_back("confusion", matrix_);
  return all;
}

sconce::Callbacks Reports::callbacks() {
  sconce::Callbacks all;
  const auto add = [&all](auto& report) {
    if (report) all.push_back(&*report);
  };
  all.push_back(&bar_);
  add(curve_);
  add(confusion_);
  add(scalars_);
  add(trace_);
  return all;
}

}  // namespace train
