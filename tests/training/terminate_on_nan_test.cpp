#include "sconce/training/terminate_on_nan.hpp"

#include <cmath>

#include "catch.hpp"
#include "sconce/training/early_stopping.hpp"
#include "support/fitting.hpp"
#include "support/warnings.hpp"

using sconce::TerminateOnNaN;
using sconce::test::Fitting;
using sconce::test::Warnings;

TEST_CASE("TerminateOnNaN stops a fit and names the first non-finite parameter") {
  const Warnings warnings;
  TerminateOnNaN terminating;
  Fitting<> fitting({&terminating});
  CHECK_FALSE(fitting.fit({.max_epochs = 2}).stopped);

  // The value of this loss is infinite, but its gradient is finite and reaches every parameter.
  const sconce::Loss loss = [](const torch::Tensor& output, const torch::Tensor& target) {
    return torch::nn::functional::cross_entropy(output, target) + INFINITY;
  };
  auto result = fitting.fit({.max_epochs = 3, .loss = loss});
  CHECK(result.epochs.size() == 1);
  CHECK(result.stop_reason == "loss is inf, and all parameters are finite");

  auto parameters = fitting.model->parameters();
  for (size_t i = 0; i < 3; ++i) parameters[i].set_requires_grad(false);
  parameters[3].detach().fill_(std::nan(""));
  result = fitting.fit({.max_epochs = 3});
  CHECK(result.epochs.size() == 1);
  CHECK(result.stop_reason == "loss is nan, and the first non-finite parameter is 3.bias");
  CHECK(warnings.messages().empty());
}

TEST_CASE("a fit warns once about non-finite losses unless a callback stops the fit") {
  Fitting<> fitting;
  {
    const torch::NoGradGuard no_grad;
    fitting.model->parameters()[0].fill_(std::nan(""));
  }
  const Warnings warnings;
  CHECK(fitting.fit({.max_epochs = 3}).epochs.size() == 3);
  REQUIRE(warnings.messages().size() == 1);
  CHECK(warnings.messages()[0] ==
        "sconce::Trainer::fit: the loss of epoch 1 is nan, and training continues; use the "
        "callback sconce::TerminateOnNaN to stop the fit in this case");
  sconce::EarlyStopping stopping("loss");
  fitting.with.callbacks = {&stopping};
  fitting.fit({.max_epochs = 3});
  CHECK(warnings.messages().size() == 1);
}
