#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sconce {

/// Values by name, in the order in which they were inserted.
class MetricValues {
 public:
  MetricValues() = default;
  /// Makes values in the order of the list.
  MetricValues(std::initializer_list<std::pair<std::string, double>> values) : values_(values) {}

  /// Adds a value at the end. The name should be new: `at` finds the first value of a name.
  void insert(std::string name, double value) { values_.emplace_back(std::move(name), value); }
  /// Returns whether there is a value of that name.
  bool contains(const std::string& name) const;

  /// Returns a value.
  /// @throw c10::Error naming all values if there is none of that name.
  double at(const std::string& name) const;

  /// Returns an iterator to the first pair of name and value.
  auto begin() const { return values_.begin(); }
  /// Returns the iterator after the last pair.
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_ = {};
};

/// The results of one epoch.
struct EpochMetrics {
  int epoch = 0;              ///< number of the epoch, from 1
  double loss = 0;            ///< mean loss of the examples, measured during training
  MetricValues metrics = {};  ///< "train_acc" during training, "test_loss" and "test_acc"
                              ///< after the epoch, and so on by the metrics' names
  int64_t examples = 0;       ///< number of training examples
  double seconds = 0;         ///< time of training and of saves within the epoch, without the test

  /// Returns a metric, or the loss by the name "loss".
  /// @throw c10::Error naming all metrics if there is none of that name.
  double at(const std::string& name) const { return name == "loss" ? loss : metrics.at(name); }
  /// Returns whether `at` finds that name.
  bool contains(const std::string& name) const { return name == "loss" || metrics.contains(name); }
};

/// The results of `Trainer::fit`, with an entry for each epoch.
struct FitResult {
  std::vector<EpochMetrics> epochs =
      {};                        ///< also the epochs before the checkpoint of a resumed fit
  bool stopped = false;          ///< whether a callback ended the fit early
  std::string stop_reason = {};  ///< why it did, as `Fit::stop_reason` says; else empty

  /// Returns the training examples per second over all epochs, or nan without an epoch.
  double examples_per_second() const;
};

}  // namespace sconce
