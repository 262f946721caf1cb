#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>

#include <set>
#include <string>
#include <vector>

#include "trainer_scripts/trace.hpp"

namespace trainer_scripts {

constexpr int64_t features = 8;  ///< per item; the first feature is the item index / 64
constexpr int64_t classes = 3;   ///< number of target classes

/// Returns the indices of the items in a batch.
inline std::string items_of(const at::Tensor& data) {
  return numbers(data.select(1, 0) * 64);
}

/// A small model that records the items in each batch in the trace.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl(std::string kind, double dropout, Trace& trace)
      : kind_(std::move(kind)), dropout_(dropout), trace_(&trace) {
    reset();
  }

  void reset() override {
    namespace nn = torch::nn;
    body = register_module("body", nn::Sequential(nn::Flatten()));
    int64_t width = features;
    if (kind_ == "conv") {
      body->push_back(nn::Unflatten(nn::UnflattenOptions(1, {1, 2, 4})));
      body->push_back(nn::Conv2d(nn::Conv2dOptions(1, 3, 2)));
      body->push_back(nn::ReLU());
      body->push_back(nn::Flatten());
      width = 9;
    } else if (kind_ != "linear") {
      width = 6;
      body->push_back(nn::Linear(features, width));
      if (kind_ == "norm") body->push_back(nn::BatchNorm1d(width));
      body->push_back(nn::ReLU());
    }
    if (dropout_ > 0) body->push_back(nn::Dropout(dropout_));
    head = register_module("head", nn::Linear(width, classes));
  }

  at::Tensor forward(const at::Tensor& data) {
    trace_->line((is_training() ? "train " : "test ") + items_of(data));
    return head(body->forward(data));
  }

  /// Frees the head and tries to create a new one at the same address.
  void new_head() {
    const auto width = head->weight.size(1);
    const std::set<const void*> old = {head->weight.unsafeGetTensorImpl(),
                                       head->bias.unsafeGetTensorImpl()};
    unregister_module("head");
    head = nullptr;
    auto generator = at::detail::getDefaultCPUGenerator();
    const auto state = generator.get_state();
    std::vector<torch::nn::Linear> tries;
    do {
      generator.set_state(state);  // each head draws the same numbers
      tries.emplace_back(width, classes);
    } while (tries.size() < 50 && !old.contains(tries.back()->weight.unsafeGetTensorImpl()));
    head = register_module("head", tries.back());
  }

  torch::nn::Sequential body = nullptr;
  torch::nn::Linear head = nullptr;

 private:
  std::string kind_;
  double dropout_;
  Trace* trace_;
};
TORCH_MODULE(Net);

}  // namespace trainer_scripts
