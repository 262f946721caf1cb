#include "sconce/optim/decay_groups.hpp"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/sgd.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::AdamW;
using sconce::optim::Kernels;
using sconce::optim::NAdamOptions;
using sconce::optim::SGD;
using torch::optim::SGDOptions;

namespace {

// Custom modules: a norm, an embedding, a tied weight, and a position parameter that is registered
// directly in the parent module.
struct RMSNormImpl : torch::nn::Module {
  torch::Tensor weight = register_parameter("weight", torch::ones({4}));
};
struct Language : torch::nn::Module {
  torch::Tensor position_embedding = register_parameter("position_embedding", torch::ones({9, 4}));
  torch::nn::Embedding tokens = register_module("tokens", torch::nn::Embedding(9, 4));
  std::shared_ptr<RMSNormImpl> norm = register_module("norm", std::make_shared<RMSNormImpl>());
  torch::nn::LSTM lstm = register_module("lstm", torch::nn::LSTM(4, 4));
  torch::nn::BatchNorm1d batch_norm = register_module("batch_norm", torch::nn::BatchNorm1d(4));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(4, 9));
  void tie() { head->weight = head->register_parameter("tied", tokens->weight); }
};

std::set<std::string> names_in(const torch::nn::Module& model,
                               const std::vector<torch::Tensor>& parameters) {
  std::set<std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    for (const auto& one : parameters) {
      if (one.is_same(parameter.value())) names.insert(parameter.key());
    }
  }
  return names;
}

}  // namespace

TEST_CASE("decay_groups puts biases, norms, and embeddings into a group without weight decay") {
  Language model;
  const auto groups = sconce::optim::decay_groups(model, 0.25).groups;
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].weight_decay == 0.25);
  CHECK(groups[1].weight_decay == 0);
  using Set = std::set<std::string>;
  CHECK(names_in(model, groups[0].params) ==
        Set{"lstm.weight_ih_l0", "lstm.weight_hh_l0", "head.weight"});
  CHECK(names_in(model, groups[1].params) ==
        Set{"position_embedding", "tokens.weight", "norm.weight", "lstm.bias_ih_l0",
            "lstm.bias_hh_l0", "batch_norm.weight", "batch_norm.bias", "head.bias"});
  model.tie();
  CHECK(names_in(model, sconce::optim::decay_groups(model, 0.25).groups[1].params)
            .contains("head.tied"));
}

TEST_CASE(
    "an optimizer with decay_groups decays only the first group, regardless of the optimizer's "
    "defaults") {
  torch::nn::Linear net(2, 2);
  const auto groups = sconce::optim::decay_groups(*net, 0.5);
  const auto check = [&](torch::optim::Optimizer& optimizer, double lr) {
    REQUIRE(optimizer.param_groups().size() == 2);
    for (auto& parameter : net->parameters())
      parameter.mutable_grad() = torch::zeros_like(parameter);
    const auto weight = net->weight.detach().clone(), bias = net->bias.detach().clone();
    optimizer.step();
    CHECK(net->weight.allclose(weight * (1 - lr * 0.5), 1e-6, 1e-7));
    CHECK(net->bias.equal(bias));
  };
  AdamW adamw(groups, 0.1);  // its default weight decay is 0.01
  check(adamw, 0.1);
  SGD sgd(groups, SGDOptions(0.1).weight_decay(0.125), {.kernels = Kernels::for_loop});
  check(sgd, 0.1);
  sconce::optim::NAdam nadam(groups, NAdamOptions(0.1));
  CHECK(static_cast<NAdamOptions&>(nadam.param_groups()[0].options()).weight_decay() == 0.5);
  CHECK(static_cast<NAdamOptions&>(nadam.param_groups()[1].options()).weight_decay() == 0);
}

TEST_CASE("decay_groups lists each parameter once and omits an empty group") {
  const torch::nn::Linear layer(torch::nn::LinearOptions(2, 2).bias(false));
  torch::nn::Sequential twice(layer, torch::nn::ReLU(), layer);
  const auto groups = sconce::optim::decay_groups(*twice, 0.5).groups;
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].params.size() == 1);
  CHECK(groups[0].weight_decay == 0.5);
  const std::string who = "sconce::optim::decay_groups: expected ";
  CHECK_THROWS_WITH(sconce::optim::decay_groups(*twice, -1),
                    ContainsSubstring(who + "weight_decay to be at least 0, got -1"));
  CHECK_THROWS_WITH(sconce::optim::decay_groups(*torch::nn::ReLU(), 0.1),
                    ContainsSubstring(who + "a model with parameters, got torch::nn::ReLUImpl"));
}
