#pragma once

// Collects, copies, and compares named module tensors for tests of averaged weights.

#include <torch/torch.h>

#include <string>

#include "catch.hpp"

namespace sconce::test {

using State = torch::OrderedDict<std::string, torch::Tensor>;

inline State tensors_of(const torch::nn::Module& module) {
  State all = module.named_parameters();
  for (const auto& item : module.named_buffers()) all.insert(item.key(), item.value());
  return all;
}

inline State copy_of(const State& state) {
  State copy;
  for (const auto& item : state) copy.insert(item.key(), item.value().detach().clone());
  return copy;
}

inline State state_from(const c10::IValue& dict) {
  State state;
  for (const auto& item : dict.toGenericDict()) {
    state.insert(item.key().toStringRef(), item.value().toTensor());
  }
  return state;
}

inline void check_equal(const State& ours, const State& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (const auto& item : theirs) {
    INFO(item.key());
    REQUIRE(ours.contains(item.key()));
    CHECK(ours[item.key()].dtype() == item.value().dtype());
    CHECK(ours[item.key()].equal(item.value()));
  }
}

/// Sets all tensors to the given value.
inline void fill_all(const torch::nn::Module& module, double value) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : tensors_of(module)) item.value().fill_(value);
}

/// Replaces the tensors' data with copies of the tensors in the dict. Their type may differ.
inline void set_all(const torch::nn::Module& module, const c10::IValue& values) {
  const auto tensors = tensors_of(module);
  for (const auto& item : state_from(values)) tensors[item.key()].set_data(item.value().clone());
}

}  // namespace sconce::test
