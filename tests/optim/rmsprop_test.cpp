#include "sconce/optim/rmsprop.hpp"

#include "catch.hpp"
#include "optim/training.hpp"
#include "support/host_reads.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::RMSprop;
using torch::optim::RMSpropOptions;

namespace {

// The choice is one of the eight rows in which each two of the options have all their values.
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

}  // namespace

std::vector<sconce::test::Case> sconce::test::rmsprop_cases() {
  return cases_of_rows("rmsprop", {Kernels::foreach, Kernels::for_loop}, rmsprop_case);
}

TEST_CASE("momentum and centered of RMSprop can be turned on after the first step") {
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
      // The first step with momentum is one without.
      CHECK(sconce::test::close(p[0], expected[0]) == (step < 2));
    }
    const auto state = sconce::test::result_of(optimizer, p).tensors;
    CHECK(state.contains("state.0.momentum_buffer"));
    CHECK(state.contains("state.0.grad_avg"));
  }
}

TEST_CASE("RMSprop reads nothing on the host except a tensor lr") {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);
  for (const auto kernels : {Kernels::foreach, Kernels::for_loop}) {
    for (const bool tensor_lr : {false, true}) {
      const auto c = rmsprop_case(torch::kFloat, kernels, tensor_lr ? 6 : 2);
      const auto optimizer = c.make(parameters, c.extra);
      optimizer->step();
      const sconce::test::HostReads reads;
      optimizer->step();
      CHECK(reads.count() == (tensor_lr ? 2 : 0));  // one in each group
    }
  }
}

TEST_CASE("RMSprop rejects invalid options, sparse gradients, and fused kernels") {
  const auto p = torch::ones({2, 1}).requires_grad_();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<RMSpropOptions, std::string>> wrong = {
      {RMSpropOptions(-1), "expected lr >= 0, got -1"},
      {RMSpropOptions(nan), "expected lr >= 0, got nan"},
      {RMSpropOptions().eps(-1), "expected eps >= 0, got -1"},
      {RMSpropOptions().alpha(-0.5), "expected alpha >= 0, got -0.5"},
      {RMSpropOptions().momentum(-2), "expected momentum >= 0, got -2"},
      {RMSpropOptions().weight_decay(nan), "expected weight_decay >= 0, got nan"}};
  sconce::test::check_refused<RMSprop>("sconce::optim::RMSprop", RMSpropOptions(), wrong);
  CHECK_THROWS_WITH(RMSprop({p}, {}, {.kernels = Kernels::fused}),
                    ContainsSubstring("sconce::optim::RMSprop: expected Kernels::foreach or "
                                      "Kernels::for_loop, because LibTorch has no others for it, "
                                      "got Kernels::fused"));
  RMSprop optimizer({p});
  CHECK(optimizer.kernels() == Kernels::foreach);
  CHECK_FALSE(optimizer.step_supports_amp_scaling());
  p.mutable_grad() = torch::ones({2, 1}).to_sparse(1);
  CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("expected dense gradients, got a sparse"));
  CHECK(p.equal(torch::ones({2, 1})));
}

TEST_CASE("archives of RMSprop load into LibTorch's RMSprop and back") {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);
  const auto options = RMSpropOptions(0.01).momentum(0.9).centered(true);
  RMSprop ours(parameters, options);
  torch::optim::RMSprop theirs(parameters, RMSpropOptions(0.5));
  ours.step();
  ours.step();
  std::stringstream to_theirs;
  torch::save(ours, to_theirs);
  torch::load(theirs, to_theirs);
  const auto* state = static_cast<const torch::optim::RMSpropParamState*>(
      theirs.state().at(parameters[0].unsafeGetTensorImpl()).get());
  CHECK(state->step() == 2);
  CHECK(theirs.param_groups()[0].options().get_lr() == 0.01);

  const auto before = sconce::test::copies(sconce::test::result_of(ours, parameters));
  std::stringstream to_ours;
  torch::save(theirs, to_ours);
  RMSprop again(parameters);
  torch::load(again, to_ours);
  CHECK(sconce::test::same_bits(before, sconce::test::result_of(again, parameters).tensors));
}
