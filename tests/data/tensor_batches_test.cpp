#include "sconce/data/tensor_batches.hpp"

#include <algorithm>
#include <concepts>
#include <string>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "support/error_of.hpp"

namespace {

using sconce::data::Batches;
using sconce::data::BatchesOptions;
using sconce::data::TensorBatches;
using sconce::test::error_of;

struct Sentences {
  torch::Tensor tokens, mask;
};

// Returns all rows of an epoch as a single batch.
template <class T>
std::vector<torch::Tensor> joined(const TensorBatches<T>& batches) {
  std::vector<std::vector<torch::Tensor>> parts;
  for (const auto& batch : batches) {
    size_t place = 0;
    sconce::nn::for_each_tensor(batch, [&](const torch::Tensor& tensor) {
      parts.resize(std::max(parts.size(), place + 1));
      parts[place++].push_back(tensor);
    });
  }
  std::vector<torch::Tensor> whole;
  for (const auto& part : parts) whole.push_back(torch::cat(part));
  return whole;
}

}  // namespace

template <>
struct sconce::nn::TensorTree<Sentences>
    : sconce::nn::TensorMembers<&Sentences::tokens, &Sentences::mask> {};

TEST_CASE("TensorBatches splits one or more tensors in the same order as Batches") {
  const auto rows = torch::arange(7);
  const auto options = GENERATE(BatchesOptions{.batch_size = 3}, BatchesOptions{.drop_last = true},
                                BatchesOptions{.batch_size = 2, .shuffle = true, .seed = 3});
  std::vector<torch::Tensor> targets;
  for (const auto& batch : Batches({rows, rows}, options)) targets.push_back(batch.target);
  const auto expected = torch::cat(targets);
  const TensorBatches one(rows, options);
  static_assert(std::same_as<decltype(one), const TensorBatches<torch::Tensor>>);
  CHECK(joined(one)[0].equal(expected));
  CHECK(one.size() == Batches({rows, rows}, options).size());
  const TensorBatches three(std::tuple(rows, 10 * rows, -rows), options);
  auto [a, b, c] = *three.begin();
  CHECK(b.equal(10 * a));
  CHECK(c.equal(-a));
  CHECK(joined(TensorBatches(std::vector{rows, 2 * rows, rows, rows}, options))[1].equal(2 *
                                                                                         expected));
  CHECK(joined(TensorBatches(Sentences{rows, rows + 1}, options))[1].equal(expected + 1));
}

TEST_CASE("without shuffling, TensorBatches returns views and can start at any batch of an epoch") {
  const auto x = torch::randn({5, 2});
  const TensorBatches batches(x, {.batch_size = 2});
  CHECK(batches.begin(1, 0)->const_data_ptr() == x[2].const_data_ptr());
  CHECK(batches.begin(2, 4)->equal(x.narrow(0, 4, 1)));
  CHECK(batches.dataset().is_same(x));
  CHECK(TensorBatches(torch::ones({0, 2})).size() == 0);
}

TEST_CASE("TensorBatches rejects tensors with different row counts and tensors with no rows") {
  const std::string who = "sconce::data::TensorBatches: ";
  const auto x = torch::ones({3});
  CHECK(error_of([&] { (void)TensorBatches(std::vector<torch::Tensor>()); }) ==
        who + "expected a tensor, got none");
  CHECK(error_of([&] { (void)TensorBatches(std::tuple(x, torch::Tensor())); }) ==
        who + "tensor 1: expected a tensor, got an undefined tensor");
  CHECK(error_of([&] { (void)TensorBatches(std::tuple(x, x, torch::ones({4}))); }) ==
        who + "tensor 2: expected 3 rows as in the first, got 4");
  CHECK(error_of([&] { (void)TensorBatches(torch::ones({})); }) ==
        who + "tensor 0: expected at least 1 dimension, got a 0-dim tensor");
  CHECK(error_of([&] { (void)TensorBatches(std::tuple(x, x.to(torch::kMeta))); }) ==
        who + "tensor 1: expected a tensor on cpu (like the first), got a tensor on meta");
}
