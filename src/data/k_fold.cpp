#include "sconce/data/k_fold.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

#include "sconce/data/sampler.hpp"

namespace sconce::data {
namespace {

std::vector<int64_t> order_of(int64_t size, const KFoldOptions& options) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options.shuffle) {
    const auto shuffled = RandomSampler(size, options.random_state).indices();
    std::copy_n(shuffled.const_data_ptr<int64_t>(), size, order.begin());
  }
  return order;
}

}  // namespace

std::vector<Fold> k_fold(int64_t size, KFoldOptions options) {
  constexpr auto caller = "sconce::data::k_fold";
  const int64_t folds = options.n_splits;
  TORCH_CHECK(folds >= 2, caller, ": expected n_splits to be at least 2, got ", folds);
  TORCH_CHECK(folds <= size, caller, ": expected n_splits to be at most ", size,
              " (the number of items), got ", folds);
  TORCH_CHECK(options.shuffle || options.random_state == 0, caller,
              ": expected random_state only with shuffle, got ", options.random_state,
              " without shuffle");
  const auto order = order_of(size, options);
  std::vector<int64_t> fold_of(order.size());
  auto next = order.begin();
  for (int64_t fold = 0; fold < folds; ++fold) {
    const int64_t length = size / folds + (fold < size % folds ? 1 : 0);
    for (int64_t i = 0; i < length; ++i) fold_of[static_cast<size_t>(*next++)] = fold;
  }
  std::vector<Fold> all(static_cast<size_t>(folds));
  for (int64_t item = 0; item < size; ++item) {
    for (int64_t fold = 0; fold < folds; ++fold) {
      auto& [train, test] = all[static_cast<size_t>(fold)];
      (fold_of[static_cast<size_t>(item)] == fold ? test : train).push_back(item);
    }
  }
  return all;
}

}  // namespace sconce::data
