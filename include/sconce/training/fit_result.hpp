#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sconce {

/// Values by name, in the order in which they came.
class MetricValues {
 public:
  MetricValues() = default;
  MetricValues(std::initializer_list<std::pair<std::string, double>> values) : values_(values) {}

  void insert(std::string name, double value) { values_.emplace_back(std::move(name), value); }
  bool contains(const std::string& name) const;

  /// @throw c10::Error naming those that are there if there is none of that name.
  double at(const std::string& name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_ = {};
};

/// What one epoch came to.
struct EpochMetrics {
  int epoch = 0;              ///< counted from 1
  double loss = 0;            ///< mean over the examples, measured while training
  MetricValues metrics = {};  ///< "train_acc" while the parameters changed, "test_loss" and
                              ///< "test_acc" after the epoch, and so on by the metrics' names
  int64_t examples = 0;       ///< examples trained on
  double seconds = 0;         ///< training, and saves within the epoch, without testing

  /// The metric of that name, or the loss as "loss".
  /// @throw c10::Error naming those that are there if there is none.
  double at(const std::string& name) const { return name == "loss" ? loss : metrics.at(name); }
  bool contains(const std::string& name) const { return name == "loss" || metrics.contains(name); }
};

/// What `Trainer::fit` came to, an entry an epoch.
struct FitResult {
  std::vector<EpochMetrics> epochs = {};  ///< those before a resumed fit's checkpoint too
  bool stopped = false;                   ///< by a callback, before the last epoch was over

  /// Examples trained on per second of training, over all epochs; nan without an epoch.
  double examples_per_second() const;
};

}  // namespace sconce
