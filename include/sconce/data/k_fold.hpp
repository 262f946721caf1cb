#pragma once

#include <cstdint>
#include <vector>

namespace sconce::data {

/// The indices of the training and test items of one split, in ascending order. Pass the indices to
/// `Subset`, as in `Subset(source, fold.train)`.
struct Fold {
  std::vector<int64_t> train = {};  ///< all items that are not in `test`
  std::vector<int64_t> test = {};   ///< the items of this fold
};

/// Options for `k_fold`, with the same names and defaults as in scikit-learn.
struct KFoldOptions {
  int64_t n_splits = 5;  ///< number of folds, from 2 to the number of items
  bool shuffle = false;  ///< whether the folds are random rather than consecutive ranges
  /// Seed of the CPU generator that `torch.randperm` uses to draw random folds. Requires `shuffle`.
  /// scikit-learn uses NumPy's generator and produces different folds for the same seed.
  uint64_t random_state = 0;
};

/// Splits the indices of `size` items into folds for cross-validation. Each item belongs to the
/// test set of exactly one fold. The first `size % n_splits` folds have one more item than the
/// others.
/// Python: `sklearn.model_selection.KFold(n_splits, shuffle=shuffle).split(range(size))`.
/// @throw c10::Error if `n_splits` is below 2 or above `size`, or if `random_state` is set without
/// `shuffle`.
std::vector<Fold> k_fold(int64_t size, KFoldOptions options = {});

}  // namespace sconce::data
