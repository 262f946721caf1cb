#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sconce/training/any_batches.hpp"

namespace sconce {

/// A test set's batches and the prefix of its value names.
struct NamedBatches {
  std::string name;    ///< prefix, such as "val" for "val_loss" and "val_acc"
  AnyBatches batches;  ///< the batches
};

/// A fit's test sets. A fit can have no test set, a single unnamed test set, or several named test
/// sets, such as `{{"val", a}, {"hard", b}}`. An unnamed test set is called "test".
/// Python: a list of loaders passed as Lightning's `val_dataloaders`.
class TestSets {
 public:
  /// Constructs an empty list of test sets.
  TestSets() = default;
  /// Constructs an empty list of test sets.
  TestSets(std::nullopt_t) {}
  /// Constructs a single test set, called "test", from anything that `AnyBatches` accepts.
  template <class Source>
    requires(!std::same_as<Source, TestSets> && !std::same_as<Source, std::optional<AnyBatches>>)
  TestSets(Source batches) {
    sets_.push_back({"test", AnyBatches(std::move(batches))});
  }
  // This constructor is a template to prevent conversions. Otherwise, g++ 16 endlessly checks
  // whether the source of a copy can be converted.
  /// Constructs a single test set, called "test", or an empty list if the optional is empty.
  template <std::same_as<std::optional<AnyBatches>> Optional>
  TestSets(Optional batches) {
    if (batches) sets_.push_back({"test", *std::move(batches)});
  }
  /// Constructs a list of named test sets.
  TestSets(std::initializer_list<NamedBatches> sets) : sets_(sets) {}
  /// Fails to compile, because multiple test sets must be named.
  template <class A, class B, class... More>
  TestSets(const A&, const B&, const More&...) {
    static_assert(
        sizeof(A) == 0,
        "sconce::FitData: expected names for several test sets, such as .test = {{\"val\", "
        "a}, {\"hard\", b}}");
  }

  /// Returns whether there are any test sets.
  explicit operator bool() const { return !sets_.empty(); }
  /// Returns whether there are any test sets.
  bool has_value() const { return !sets_.empty(); }
  /// Returns the number of test sets.
  size_t size() const { return sets_.size(); }
  /// Returns an iterator to the first test set.
  auto begin() const { return sets_.begin(); }
  /// Returns the past-the-end iterator.
  auto end() const { return sets_.end(); }
  /// Returns the first test set's batches.
  /// @throw std::out_of_range if there are no test sets.
  const AnyBatches& value() const { return sets_.at(0).batches; }
  /// Returns the first test set's batches. There must be at least one test set.
  const AnyBatches& operator*() const { return sets_.front().batches; }
  /// Removes all test sets.
  void reset() { sets_.clear(); }

 private:
  std::vector<NamedBatches> sets_ = {};
};

}  // namespace sconce
