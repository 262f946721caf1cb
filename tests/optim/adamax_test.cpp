#include "sconce/optim/adamax.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"

using sconce::optim::Adamax;
using sconce::optim::AdamaxOptions;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;

namespace {

// The bits of `row` determine which options are enabled. Together, the rows cover every combination
// of values for every pair of options.
sconce::test::Case adamax_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, decays = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double weight_decay = decays ? 0.1 : 0;
  sconce::test::Case c;
  c.optimizer = "Adamax";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.02, dtype);
  c.arguments =
      sconce::test::text("lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=", weight_decay);
  c.of_second = "lr=0.007, betas=(0.5, 0.75)";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    const auto options =
        AdamaxOptions(0.02).betas({0.8, 0.95}).eps(1e-6).weight_decay(weight_decay);
    auto second = options;
    second.lr(0.007).betas({0.5, 0.75});
    return std::make_unique<Adamax>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

const sconce::test::AddKind adamax_row(sconce::test::with_choices<Adamax>(
    {.name = "Adamax",
     .fastest = Kernels::foreach,
     .reads = {.for_loop_tensor_lr = 1},
     .python_arguments =
         [](const auto& o) {
           return sconce::test::text("betas=(", o.first, ", ", o.second, "), eps=1e-6");
         },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           auto options = AdamaxOptions(o.lr).weight_decay(o.weight_decay).eps(1e-6);
           options.betas({o.first, o.second});
           return std::make_unique<Adamax>(groups, options, extra);
         }},
    std::vector{AdamaxOptions(), AdamaxOptions().weight_decay(0.1)}));

}  // namespace

TEST_CASE("Adamax matches Python with the same kernels and has the same defaults", "[python]") {
  auto cases =
      sconce::test::cases_of_rows("adamax", {Kernels::foreach, Kernels::for_loop}, adamax_case);
  CHECK(cases.size() == 32);
  sconce::test::Case with_defaults;
  with_defaults.name = "defaults";
  with_defaults.optimizer = "Adamax";
  with_defaults.extra.kernels = Kernels::for_loop;
  with_defaults.of_second = "lr=0.25";
  with_defaults.make = [](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    return std::make_unique<Adamax>(sconce::test::two_groups(p, AdamaxOptions(0.25)),
                                    AdamaxOptions(), extra);
  };
  cases.push_back(with_defaults);
  CHECK(sconce::test::compare_with_python(cases) == 33 * (6 + 5 * 3));
}

TEST_CASE("Adamax rejects invalid options") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<AdamaxOptions, std::string>> wrong = {
      {AdamaxOptions(-1), "expected lr >= 0, got -1"},
      {AdamaxOptions(nan), "expected lr >= 0, got nan"},
      {AdamaxOptions().eps(-1), "expected eps >= 0, got -1"},
      {AdamaxOptions().betas({1, 0.5}), "expected betas in [0, 1), got 1 and 0.5"},
      {AdamaxOptions().betas({0.5, -1}), "expected betas in [0, 1), got 0.5 and -1"},
      {AdamaxOptions().weight_decay(-2), "expected weight_decay >= 0, got -2"}};
  sconce::test::check_refused<Adamax>("sconce::optim::Adamax", AdamaxOptions(), wrong);
}
