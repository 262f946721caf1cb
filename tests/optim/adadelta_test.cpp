#include "sconce/optim/adadelta.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"

using sconce::optim::Adadelta;
using sconce::optim::AdadeltaOptions;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;

namespace {

// The bits of `row` determine which options are enabled. Together, the rows cover every combination
// of values for every pair of options.
sconce::test::Case adadelta_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, decays = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double weight_decay = decays ? 0.1 : 0;
  sconce::test::Case c;
  c.optimizer = "Adadelta";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.5, dtype);
  c.arguments = sconce::test::text("lr=0.5, rho=0.75, eps=1e-3, weight_decay=", weight_decay);
  c.of_second = "lr=0.25, rho=0.5, eps=1e-2";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    const auto options = AdadeltaOptions(0.5).rho(0.75).eps(1e-3).weight_decay(weight_decay);
    auto second = options;
    second.lr(0.25).rho(0.5).eps(1e-2);
    return std::make_unique<Adadelta>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

const sconce::test::AddKind adadelta_row(sconce::test::with_choices<Adadelta>(
    {.name = "Adadelta",
     .fastest = Kernels::foreach,
     .python_arguments =
         [](const auto& o) { return sconce::test::text("rho=", o.first, ", eps=1e-3"); },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           const auto options =
               AdadeltaOptions(o.lr).weight_decay(o.weight_decay).rho(o.first).eps(1e-3);
           return std::make_unique<Adadelta>(groups, options, extra);
         }},
    std::vector{AdadeltaOptions(), AdadeltaOptions().weight_decay(0.1)}));

}  // namespace

TEST_CASE("Adadelta matches Python with the same kernels and has the same defaults", "[python]") {
  auto cases =
      sconce::test::cases_of_rows("adadelta", {Kernels::foreach, Kernels::for_loop}, adadelta_case);
  CHECK(cases.size() == 32);
  sconce::test::Case with_defaults;
  with_defaults.name = "defaults";
  with_defaults.optimizer = "Adadelta";
  with_defaults.extra.kernels = Kernels::for_loop;
  with_defaults.of_second = "lr=0.25";
  with_defaults.make = [](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    return std::make_unique<Adadelta>(sconce::test::two_groups(p, AdadeltaOptions(0.25)),
                                      AdadeltaOptions(), extra);
  };
  cases.push_back(with_defaults);
  CHECK(sconce::test::compare_with_python(cases) == 33 * (6 + 5 * 3));
}

TEST_CASE("Adadelta rejects invalid options") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<AdadeltaOptions, std::string>> wrong = {
      {AdadeltaOptions(-1), "expected lr >= 0, got -1"},
      {AdadeltaOptions().rho(1.5), "expected rho in [0, 1], got 1.5"},
      {AdadeltaOptions().rho(nan), "expected rho in [0, 1], got nan"},
      {AdadeltaOptions().eps(-1), "expected eps >= 0, got -1"},
      {AdadeltaOptions().weight_decay(nan), "expected weight_decay >= 0, got nan"}};
  sconce::test::check_refused<Adadelta>("sconce::optim::Adadelta", AdadeltaOptions(), wrong);
}
