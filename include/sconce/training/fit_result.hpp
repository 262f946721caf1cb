#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sconce {

/// A list of named values, in insertion order.
class MetricValues {
 public:
  MetricValues() = default;
  /// Constructs a list with the given values, in order.
  MetricValues(std::initializer_list<std::pair<std::string, double>> values) : values_(values) {}

  /// Appends a value. The list should not already contain the name, because `at` returns the first
  /// value with a matching name.
  void insert(std::string name, double value) { values_.emplace_back(std::move(name), value); }
  /// Returns whether there is a value with the given name.
  bool contains(const std::string& name) const;

  /// Returns the value with the given name.
  /// @throw c10::Error if there is no such value. The message lists all names.
  double at(const std::string& name) const;

  /// Returns an iterator to the first name-value pair.
  auto begin() const { return values_.begin(); }
  /// Returns the past-the-end iterator.
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_ = {};
};

/// The results of a single epoch.
struct EpochMetrics {
  int epoch = 0;              ///< number of the epoch, starting at 1
  double loss = 0;            ///< mean loss over the examples, measured during training
  MetricValues metrics = {};  ///< values such as "train_acc", measured during training, and
                              ///< "test_loss" and "test_acc", measured after the epoch
  int64_t examples = 0;       ///< number of training examples
  double seconds = 0;         ///< time spent on training and on saves within the epoch, excluding
                              ///< the test

  /// Returns the metric with the given name, or the loss if the name is "loss".
  /// @throw c10::Error if there is no such metric. The message lists all names.
  double at(const std::string& name) const { return name == "loss" ? loss : metrics.at(name); }
  /// Returns whether `at` can find the given name.
  bool contains(const std::string& name) const { return name == "loss" || metrics.contains(name); }
};

/// The results of `Trainer::fit`, with one entry per epoch.
struct FitResult {
  std::vector<EpochMetrics> epochs =
      {};                        ///< includes the epochs before the checkpoint of a resumed fit
  bool stopped = false;          ///< whether a callback ended the fit early
  std::string stop_reason = {};  ///< `Fit::stop_reason` if the fit was stopped; otherwise empty

  /// Returns the number of training examples per second over all epochs, or NaN if there are no
  /// epochs.
  double examples_per_second() const;
};

}  // namespace sconce
