#include "sconce/optim/nadam.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"

using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::NAdam;
using sconce::optim::NAdamOptions;

namespace {

// The bits in the row determine which options are enabled. Together, the rows cover every
// combination of values for every pair of options.
sconce::test::Case nadam_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, decoupled = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double weight_decay = (maximize != decoupled) != tensor_lr ? 0.1 : 0;
  sconce::test::Case c;
  c.optimizer = "NAdam";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.02, dtype);
  std::ostringstream arguments;
  arguments << "lr=0.02, betas=(0.8, 0.95), eps=1e-6, momentum_decay=0.05, weight_decay="
            << weight_decay << ", decoupled_weight_decay=" << (decoupled ? "True" : "False");
  c.arguments = arguments.str();
  c.of_second = "lr=0.007, betas=(0.5, 0.75)";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto options = NAdamOptions(0.02).betas({0.8, 0.95}).eps(1e-6).momentum_decay(0.05);
    options.weight_decay(weight_decay).decoupled_weight_decay(decoupled);
    auto second = options;
    second.lr(0.007).betas({0.5, 0.75});
    return std::make_unique<NAdam>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

const sconce::test::AddKind nadam_row(sconce::test::with_choices<NAdam>(
    {.name = "NAdam",
     .fastest = Kernels::foreach,
     .reads = {.for_loop_tensor_lr = 2},
     .python_arguments =
         [](const auto& o) {
           return sconce::test::text("betas=(", o.first, ", ", o.second,
                                     "), eps=1e-6, decoupled_weight_decay=", o.python_flag());
         },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           auto options = NAdamOptions(o.lr).weight_decay(o.weight_decay);
           options.betas({o.first, o.second}).eps(1e-6).decoupled_weight_decay(o.flag);
           return std::make_unique<NAdam>(groups, options, extra);
         }},
    std::vector{NAdamOptions(), NAdamOptions().weight_decay(0.1).decoupled_weight_decay(true)}));

}  // namespace

std::vector<sconce::test::Case> sconce::test::nadam_cases() {
  return cases_of_rows("nadam", {Kernels::foreach, Kernels::for_loop}, nadam_case);
}

TEST_CASE("NAdam rejects invalid options, sparse gradients, and fused kernels") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<NAdamOptions, std::string>> wrong = {
      {NAdamOptions(-1), "expected lr >= 0, got -1"},
      {NAdamOptions(nan), "expected lr >= 0, got nan"},
      {NAdamOptions().eps(-1), "expected eps >= 0, got -1"},
      {NAdamOptions().betas({1, 0.5}), "expected betas in [0, 1), got 1 and 0.5"},
      {NAdamOptions().betas({0.5, -1}), "expected betas in [0, 1), got 0.5 and -1"},
      {NAdamOptions().weight_decay(-2), "expected weight_decay >= 0, got -2"},
      {NAdamOptions().momentum_decay(nan), "expected momentum_decay >= 0, got nan"}};
  sconce::test::check_refused<NAdam>("sconce::optim::NAdam", NAdamOptions(), wrong);
}
