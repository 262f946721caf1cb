#include "sconce/optim/adagrad.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/nn/lazy.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::Adagrad;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using torch::optim::AdagradOptions;
using torch::optim::OptimizerParamGroup;

namespace {

// The bits of `row` determine which options are enabled. Together, the rows cover every combination
// of values for every pair of options.
sconce::test::Case adagrad_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, is_begun = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double weight_decay = maximize != is_begun ? 0.1 : 0;
  const double lr_decay = maximize != tensor_lr ? 0.25 : 0;
  const double initial = is_begun ? 0.5 : 0;
  sconce::test::Case c;
  c.optimizer = "Adagrad";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.1, dtype);
  c.sparse = weight_decay == 0 && kernels != Kernels::fused;
  std::ostringstream arguments;
  arguments << "lr=0.1, eps=1e-3, lr_decay=" << lr_decay << ", weight_decay=" << weight_decay
            << ", initial_accumulator_value=" << initial;
  c.arguments = arguments.str();
  c.of_second = "lr=0.03, eps=1e-2";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto options = AdagradOptions(0.1).eps(1e-3).lr_decay(lr_decay).weight_decay(weight_decay);
    options.initial_accumulator_value(initial);
    auto second = options;
    second.lr(0.03).eps(1e-2);
    return std::make_unique<Adagrad>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

float steps_of(const Adagrad& optimizer, int64_t parameter) {
  const auto states = optimizer.state_dict().toGenericDict().at("state").toGenericDict();
  return states.at(parameter).toGenericDict().at("step").toTensor().item<float>();
}

const sconce::test::AddKind adagrad_row(sconce::test::with_choices<Adagrad>(
    {.name = "Adagrad",
     .takes_sparse = true,
     .reads = {.fused = 1, .for_loop_tensor_lr = 1},
     .python_arguments =
         [](const auto& o) {
           return sconce::test::text("lr_decay=", o.first, ", initial_accumulator_value=", o.second,
                                     ", eps=1e-3");
         },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           auto options = AdagradOptions(o.lr).weight_decay(o.weight_decay).eps(1e-3);
           options.lr_decay(o.first).initial_accumulator_value(o.second);
           return std::make_unique<Adagrad>(groups, options, extra);
         }},
    std::vector{AdagradOptions().lr_decay(0.5),
                AdagradOptions().weight_decay(0.1).initial_accumulator_value(0.5)}));

}  // namespace

std::vector<sconce::test::Case> sconce::test::adagrad_cases() {
  return cases_of_rows("adagrad", {Kernels::fused, Kernels::foreach, Kernels::for_loop},
                       adagrad_case);
}

TEST_CASE("Adagrad supports sparse gradients without weight decay, except with Kernels::fused") {
  const auto p = torch::ones({4, 1}).requires_grad_();
  p.mutable_grad() = torch::tensor({0.0F, 2.0F, 0.0F, 4.0F}).reshape({4, 1}).to_sparse(1);
  const auto refuse = [&](Adagrad&& optimizer, const std::string& message) {
    CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring(message));
    CHECK(p.equal(torch::ones({4, 1})));
    CHECK(steps_of(optimizer, 0) == 0);
  };
  refuse(Adagrad({p}, {}, {.kernels = Kernels::fused}),
         "expected dense gradients, got a sparse gradient");
  refuse(Adagrad({p}, AdagradOptions().weight_decay(0.1)),
         "expected dense gradients (weight_decay is set), got a sparse gradient");
  Adagrad automatic({p}, AdagradOptions(0.5).eps(0));
  CHECK(automatic.kernels() == Kernels::fused);
  CHECK_FALSE(automatic.step_supports_amp_scaling());
  automatic.step();
  CHECK(p.equal(torch::tensor({1.0F, 0.5F, 1.0F, 0.5F}).reshape({4, 1})));
}

TEST_CASE("Adagrad creates its state during construction, except for lazy layers") {
  sconce::nn::LazyLinear lazy(3);
  const auto p = torch::ones({2}).requires_grad_();
  auto parameters = lazy->parameters();
  parameters.push_back(p);
  Adagrad optimizer(parameters, AdagradOptions(0.1).initial_accumulator_value(0.25));
  const auto sum_of = [&](int64_t index) {
    const auto states = optimizer.state_dict().toGenericDict().at("state").toGenericDict();
    if (!states.contains(index)) return torch::Tensor();
    return states.at(index).toGenericDict().at("sum").toTensor();
  };
  CHECK_FALSE(sum_of(0).defined());
  CHECK(sum_of(2).equal(torch::full({2}, 0.25)));
  lazy(torch::ones({1, 5})).sum().backward();
  optimizer.step();
  CHECK(sum_of(0).equal(torch::full({3, 5}, 1.25)));
  CHECK(steps_of(optimizer, 0) == 1);
  CHECK(steps_of(optimizer, 2) == 0);

  const auto later = torch::ones({2}).requires_grad_();
  std::vector<OptimizerParamGroup> group;
  group.emplace_back(
      std::vector<torch::Tensor>{later},
      std::make_unique<AdagradOptions>(AdagradOptions().initial_accumulator_value(0.5)));
  optimizer.add_param_group(group[0]);
  CHECK_FALSE(sum_of(3).defined());
  later.mutable_grad() = torch::ones({2});
  optimizer.step();
  CHECK(sum_of(3).equal(torch::full({2}, 1.25)));  // starts at the optimizer's value, as in Python
}

TEST_CASE("Adagrad rejects invalid options") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<AdagradOptions, std::string>> wrong = {
      {AdagradOptions(-1), "expected lr >= 0, got -1"},
      {AdagradOptions(nan), "expected lr >= 0, got nan"},
      {AdagradOptions().lr_decay(-2), "expected lr_decay >= 0, got -2"},
      {AdagradOptions().weight_decay(-1), "expected weight_decay >= 0, got -1"},
      {AdagradOptions().initial_accumulator_value(nan),
       "expected initial_accumulator_value >= 0, got nan"},
      {AdagradOptions().eps(-0.5), "expected eps >= 0, got -0.5"}};
  sconce::test::check_refused<Adagrad>("sconce::optim::Adagrad", AdagradOptions(), wrong);
}

TEST_CASE("on a GPU, a saved Adagrad state does not request fused kernels in Python", "[gpu]") {
  sconce::test::require_gpu();
  for (const auto& device : {torch::Device(torch::kCPU), torch::Device(torch::kCUDA)}) {
    const Adagrad optimizer({torch::ones(3, device).requires_grad_()}, AdagradOptions(0.1),
                            {.kernels = Kernels::fused});
    const auto group = optimizer.state_dict().toGenericDict().at("param_groups").toListRef()[0];
    CHECK(group.toGenericDict().at("fused").isNone() == device.is_cuda());
  }
}

TEST_CASE("on a GPU, Adagrad's lr_decay also counts steps with sparse gradients", "[gpu]") {
  sconce::test::require_gpu();
  std::vector<torch::Tensor> stepped;
  for (const auto& device : {torch::Device(torch::kCPU), torch::Device(torch::kCUDA)}) {
    const auto p = torch::ones({4, 1}, device).requires_grad_();
    Adagrad optimizer({p}, AdagradOptions(0.1).lr_decay(0.5));
    CHECK(optimizer.kernels() == Kernels::fused);
    for (int i = 0; i < 3; ++i) {
      const auto grad = torch::tensor({0.0F, 2.0F, 0.0F, 4.0F}, device).reshape({4, 1});
      p.mutable_grad() = i == 1 ? grad : grad.to_sparse(1);
      optimizer.step();
    }
    stepped.push_back(p.detach().cpu());
  }
  CHECK(torch::allclose(stepped[0], stepped[1]));
  CHECK(stepped[0][0].item<float>() == 1);
  CHECK(stepped[0][1].item<float>() < 1);
}
