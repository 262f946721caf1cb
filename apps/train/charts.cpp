#include "charts.hpp"

#include "sconce/metrics/classification.hpp"

namespace train {

Charts::Charts(const CommandLine& line, const Images& images) {
  if (!line.out.empty()) {
    curve_.emplace(line.out / "training.svg", line.model + " on " + line.data);
  }
  const auto classes = static_cast<int64_t>(images.classes.size());
  if (classes < 2 || classes > 100) return;
  matrix_ = std::make_shared<sconce::metrics::ConfusionMatrix>(
      sconce::metrics::ConfusionMatrixOptions{.num_classes = classes});
  if (!line.out.empty()) confusion_.emplace(line.out / "confusion.svg", matrix_, images.classes);
}

sconce::Metrics Charts::metrics() const {
  sconce::Metrics all = {{"acc", std::make_shared<sconce::metrics::Accuracy>()}};
  if (matrix_) all.emplace_back("confusion", matrix_);
  return all;
}

void Charts::add_to(std::vector<sconce::TrainerCallback*>& callbacks) {
  if (curve_) callbacks.push_back(&*curve_);
  if (confusion_) callbacks.push_back(&*confusion_);
}

}  // namespace train
