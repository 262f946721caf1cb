#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sconce {

/// Values by name, in insertion order.
class MetricValues {
 public:
  MetricValues() = default;
  /// Constructs the values in the order of the list.
  MetricValues(std::initializer_list<std::pair<std::string, double>> values) : values_(values) {}

  /// Appends a value. The name should be new, because `at` finds the first value with a name.
  void insert(std::string name, double value) { values_.emplace_back(std::move(name), value); }
  /// Returns whether there is a value with this name.
  bool contains(const std::string& name) const;

  /// Returns the value with this name.
  /// @throw c10::Error if there is no such value. The error lists all names.
  double at(const std::string& name) const;

  /// Returns an iterator to the first pair of name and value.
  auto begin() const { return values_.begin(); }
  /// Returns the iterator past the last pair.
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_ = {};
};

/// The results of one epoch.
struct EpochMetrics {
  int epoch = 0;              ///< number of the epoch, from 1
  double loss = 0;            ///< mean loss over the examples, measured during training
  MetricValues metrics = {};  ///< "train_acc" during training, "test_loss" and "test_acc" after the
                              ///< epoch, and so on, by the names of the metrics
  int64_t examples = 0;       ///< number of training examples
  double seconds = 0;         ///< time of training and of saves within the epoch, without the test

  /// Returns the metric with this name, or the loss for the name "loss".
  /// @throw c10::Error if there is no such metric. The error lists all names.
  double at(const std::string& name) const { return name == "loss" ? loss : metrics.at(name); }
  /// Returns whether `at` finds this name.
  bool contains(const std::string& name) const { return name == "loss" || metrics.contains(name); }
};

/// The results of `Trainer::fit`, with one entry per epoch.
struct FitResult {
  std::vector<EpochMetrics> epochs =
      {};                        ///< including the epochs before the checkpoint of a resumed fit
  bool stopped = false;          ///< whether a callback ended the fit early
  std::string stop_reason = {};  ///< the reason from `Fit::stop_reason` if so; empty otherwise

  /// Returns the number of training examples per second over all epochs, or NaN if there are no
  /// epochs.
  double examples_per_second() const;
};

}  // namespace sconce
