#include "sconce/nn/requires_grad.hpp"

#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/error_of.hpp"

using sconce::nn::requires_grad_;

TEST_CASE("requires_grad_ freezes and unfreezes exactly the parameters of the given module") {
  struct Net : torch::nn::Module {
    torch::nn::Sequential body = register_module(
        "body", torch::nn::Sequential(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3)));
    torch::nn::Linear head = register_module("head", torch::nn::Linear(3, 1));
  } net;
  CHECK(&requires_grad_(*net.body, false) == net.body.get());
  for (const auto& item : net.named_parameters()) {
    CHECK(item.value().requires_grad() == item.key().starts_with("head."));
  }
  net.head->forward(net.body->forward(torch::ones({4, 2}))).sum().backward();
  for (const auto& parameter : net.body->parameters()) CHECK_FALSE(parameter.grad().defined());
  CHECK(net.head->weight.grad().defined());
  requires_grad_(net);
  for (const auto& parameter : net.parameters()) CHECK(parameter.requires_grad());
}

TEST_CASE("frozen parameters stay unchanged when they share an optimizer with trained parameters") {
  torch::nn::Linear frozen(2, 2), trained(2, 1);
  auto parameters = frozen->parameters();
  for (const auto& parameter : trained->parameters()) parameters.push_back(parameter);
  sconce::optim::SGD sgd(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto before = frozen->weight.detach().clone();
  requires_grad_(*frozen, false);
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    const auto weight = trained->weight.detach().clone();
    trained->forward(frozen->forward(torch::ones({4, 2}))).sum().backward();
    sgd.step();
    CHECK_FALSE(trained->weight.equal(weight));
  }
  CHECK(frozen->weight.equal(before));
}

TEST_CASE("a frozen lazy layer stays frozen after its first forward pass") {
  sconce::nn::LazyLinear layer(3);
  requires_grad_(*layer, false);
  CHECK_FALSE(layer->forward(torch::ones({4, 2})).requires_grad());
  CHECK_FALSE(layer->weight.requires_grad());
}

TEST_CASE("requires_grad_ rejects an integer parameter before changing any parameter") {
  struct Counts : torch::nn::Module {
    torch::nn::Linear linear = register_module("linear", torch::nn::Linear(1, 1));
    torch::Tensor count =
        register_parameter("count", torch::ones({2}, torch::kLong), /*requires_grad=*/false);
  } net;
  requires_grad_(net, false);
  CHECK(sconce::test::error_of([&] { requires_grad_(net); }) ==
        "sconce::nn::requires_grad_: expected parameters of a floating-point or complex type, got "
        "'count' of type Long");
  CHECK_FALSE(net.linear->weight.requires_grad());
}
