#include "sconce/optim/rmsprop.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"

using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::RMSprop;
using torch::optim::RMSpropOptions;

namespace {

// Creates the test case for one of eight rows of options. Together, the rows cover every
// combination of values for every pair of options.
sconce::test::Case rmsprop_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, centered = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double momentum = maximize != centered ? 0.9 : 0;
  const double weight_decay = maximize != tensor_lr ? 0.1 : 0;
  sconce::test::Case c;
  c.optimizer = "RMSprop";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.02, dtype);
  std::ostringstream arguments;
  arguments << "lr=0.02, alpha=0.95, eps=1e-3, momentum=" << momentum
            << ", weight_decay=" << weight_decay << ", centered=" << (centered ? "True" : "False");
  c.arguments = arguments.str();
  c.of_second = "lr=0.007, alpha=0.5, eps=1e-2";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto options = RMSpropOptions(0.02).alpha(0.95).eps(1e-3).momentum(momentum);
    options.weight_decay(weight_decay).centered(centered);
    auto second = options;
    second.lr(0.007).alpha(0.5).eps(1e-2);
    return std::make_unique<RMSprop>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

const sconce::test::AddKind rmsprop_row(sconce::test::with_choices<RMSprop>(
    {.name = "RMSprop",
     .fastest = Kernels::foreach,
     .optional_keys = {"momentum_buffer", "grad_avg"},
     .python_arguments =
         [](const auto& o) {
           return sconce::test::text("momentum=", o.first, ", alpha=", o.second,
                                     ", eps=1e-3, centered=", o.python_flag());
         },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           auto options = RMSpropOptions(o.lr).weight_decay(o.weight_decay).eps(1e-3);
           options.momentum(o.first).alpha(o.second).centered(o.flag);
           return std::make_unique<RMSprop>(groups, options, extra);
         }},
    std::vector{RMSpropOptions().momentum(0.9).centered(true), RMSpropOptions()}));

}  // namespace

std::vector<sconce::test::Case> sconce::test::rmsprop_cases() {
  return cases_of_rows("rmsprop", {Kernels::foreach, Kernels::for_loop}, rmsprop_case);
}

TEST_CASE("RMSprop's momentum and centered options can be enabled after the first step") {
  for (const auto kernels : {Kernels::foreach, Kernels::for_loop}) {
    auto p = sconce::test::make_parameters(torch::kFloat);
    auto expected = sconce::test::make_parameters(torch::kFloat);
    RMSprop optimizer(p, RMSpropOptions(0.1).alpha(0.5).eps(0.1), {.kernels = kernels});
    RMSprop plain(expected, RMSpropOptions(0.1).alpha(0.5).eps(0.1), {.kernels = kernels});
    for (int step = 0; step < 3; ++step) {
      auto& options = static_cast<RMSpropOptions&>(optimizer.param_groups()[0].options());
      options.momentum(step == 1 ? 0.5 : 0).centered(step == 2);
      sconce::test::set_gradients(p, step);
      sconce::test::set_gradients(expected, step);
      optimizer.step();
      plain.step();
      // The first step with momentum gives the same result as a step without momentum.
      CHECK(sconce::test::close(p[0], expected[0]) == (step < 2));
    }
    const auto state = sconce::test::result_of(optimizer, p).tensors;
    CHECK(state.contains("state.0.momentum_buffer"));
    CHECK(state.contains("state.0.grad_avg"));
  }
}

TEST_CASE("RMSprop rejects invalid options, sparse gradients, and fused kernels") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<RMSpropOptions, std::string>> wrong = {
      {RMSpropOptions(-1), "expected lr >= 0, got -1"},
      {RMSpropOptions(nan), "expected lr >= 0, got nan"},
      {RMSpropOptions().eps(-1), "expected eps >= 0, got -1"},
      {RMSpropOptions().alpha(-0.5), "expected alpha >= 0, got -0.5"},
      {RMSpropOptions().momentum(-2), "expected momentum >= 0, got -2"},
      {RMSpropOptions().weight_decay(nan), "expected weight_decay >= 0, got nan"}};
  sconce::test::check_refused<RMSprop>("sconce::optim::RMSprop", RMSpropOptions(), wrong);
}
