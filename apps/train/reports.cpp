#include "reports.hpp"

#include <filesystem>

#include "sconce/metrics/classification.hpp"

namespace train {

namespace {

// Returns the last part of a path, because a whole path is too long for a title.
std::string name_of_data(const std::string& data) {
  const auto path = std::filesystem::absolute(data).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

Reports::Reports(const CommandLine& line, const Images& images, std::ostream& out)
    : bar_(out, {.live_loss = line.live_loss}) {
  const auto classes = static_cast<int64_t>(images.classes.size());
  if (classes >= 2 && classes <= 100) {
    matrix_ = std::make_shared<sconce::metrics::ConfusionMatrix>(
        sconce::metrics::ConfusionMatrixOptions{.num_classes = classes});
  }
  if (!line.out.empty()) add_charts(line, images);
  if (!line.scalars.empty()) {
    scalars_.emplace(line.scalars, sconce::ScalarLogOptions{.every_n_steps = line.scalars_every,
                                                            .resume = line.resume});
  }
  if (line.profile > 0) trace_.emplace(line.out / trace_name, line.profile);
}

void Reports::add_charts(const CommandLine& line, const Images& images) {
  curve_.emplace(line.out / "training.svg", line.model + " on " + name_of_data(line.data));
  if (matrix_) confusion_.emplace(line.out / "confusion.svg", matrix_, images.classes);
}

sconce::Metrics Reports::metrics() const {
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
