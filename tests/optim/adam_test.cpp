#include "sconce/optim/adam.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/io/torch_file.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::Adam;
using sconce::optim::AdamW;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::test::Case;
using sconce::test::dtypes;
using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;

namespace {

struct Choice {
  torch::ScalarType dtype;
  Kernels kernels;
  bool amsgrad;
  double weight_decay;
  bool maximize;
  bool tensor_lr;
};

template <class Optimizer, class Options>
Case make_case(const std::string& python_class, const Choice& choice) {
  const double lr = 0.02;
  auto options = Options(lr).betas({0.8, 0.95}).weight_decay(choice.weight_decay);
  options.amsgrad(choice.amsgrad).eps(1e-6);
  Case c;
  c.optimizer = python_class;
  c.dtype = choice.dtype;
  c.extra = {.kernels = choice.kernels, .maximize = choice.maximize};
  if (choice.tensor_lr) c.extra.lr = sconce::test::lr_tensor(lr, c.dtype);
  std::ostringstream arguments;
  arguments << "lr=" << lr << ", betas=(0.8, 0.95), weight_decay=" << choice.weight_decay
            << ", eps=1e-6, amsgrad=" << (choice.amsgrad ? "True" : "False");
  c.arguments = arguments.str();
  c.of_second = "lr=0.007, betas=(0.5, 0.75)";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto second = options;
    second.lr(0.007).betas({0.5, 0.75});
    return std::make_unique<Optimizer>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

template <class Optimizer, class Options>
std::vector<Case> grid(const std::string& python_class) {
  std::vector<Case> cases;
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    for (const auto dtype : dtypes) {
      if (kernels == Kernels::fused && c10::isComplexType(dtype)) continue;
      for (int bits = 0; bits < 16; ++bits) {
        const bool tensor_lr = (bits & 8) != 0;
        if (tensor_lr && kernels == Kernels::foreach) continue;
        cases.push_back(make_case<Optimizer, Options>(
            python_class, {dtype, kernels, (bits & 1) != 0, (bits & 2) != 0 ? 0.1 : 0.0,
                           (bits & 4) != 0, tensor_lr}));
      }
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    static const std::array midway = {"", "archive", "dict"};
    cases[i].name = python_class + std::to_string(i);
    cases[i].midway = midway[(i / 8 + i) % 3];
  }
  return cases;
}

template <class Optimizer, class Options>
sconce::test::Kind adam_kind(const std::string& name) {
  return sconce::test::with_choices<Optimizer>(
      {.name = name,
       .foreach_takes_tensor_lr = false,
       .reads = {.fused = 1, .for_loop_tensor_lr = 1},
       .optional_keys = {"max_exp_avg_sq"},
       .python_arguments =
           [](const auto& o) {
             return sconce::test::text("betas=(", o.first, ", ", o.second,
                                       "), eps=1e-6, amsgrad=", o.python_flag());
           },
       .make_random =
           [](const auto& groups, const auto& o, const ExtraOptions& extra) {
             auto options = Options(o.lr).betas({o.first, o.second}).eps(1e-6);
             options.weight_decay(o.weight_decay).amsgrad(o.flag);
             return std::make_unique<Optimizer>(groups, options, extra);
           }},
      std::vector{Options(0).amsgrad(true).weight_decay(0.1), Options(0).weight_decay(0.1)});
}

const sconce::test::AddKind adam_row(adam_kind<Adam, AdamOptions>("Adam"));
const sconce::test::AddKind adamw_row(adam_kind<AdamW, AdamWOptions>("AdamW"));

}  // namespace

TEST_CASE("Adam and AdamW match Python with the same kernels", "[python]") {
  auto cases = grid<Adam, AdamOptions>("Adam");
  const auto more = grid<AdamW, AdamWOptions>("AdamW");
  cases.insert(cases.end(), more.begin(), more.end());
  CHECK(sconce::test::compare_with_python(cases) == 8648);
}

TEST_CASE("Adam and AdamW reject invalid options, both as defaults and in every group") {
  const auto p = [] { return torch::ones({2}).requires_grad_(); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [&]<class Optimizer, class Options>(const std::string& name) {
    const std::vector<std::pair<Options, std::string>> wrong = {
        {Options(-1), "expected lr >= 0, got -1"},
        {Options(nan), "expected lr >= 0, got nan"},
        {Options().eps(-1e-3), "expected eps >= 0, got -0.001"},
        {Options().betas({1.0, 0.9}), "expected betas in [0, 1), got 1 and 0.9"},
        {Options().betas({0.9, -0.5}), "expected betas in [0, 1), got 0.9 and -0.5"},
        {Options().betas({nan, 0.5}), "expected betas in [0, 1), got nan and 0.5"},
        {Options().weight_decay(-2), "expected weight_decay >= 0, got -2"}};
    sconce::test::check_refused<Optimizer>(name, Options(), wrong);
    CHECK_THROWS_WITH(
        Optimizer({p()}, Options(), {.kernels = Kernels::foreach, .lr = torch::tensor(0.1)}),
        ContainsSubstring("expected lr to be a number with Kernels::foreach, got a tensor"));
  };
  check.operator()<Adam, AdamOptions>("sconce::optim::Adam");
  check.operator()<AdamW, AdamWOptions>("sconce::optim::AdamW");
}

TEST_CASE("Adam loads a state dict from an older Python version and rejects an AdamW state dict") {
  const auto p = torch::ones({3}).requires_grad_();
  p.mutable_grad() = torch::ones({3});
  Adam source({p});
  source.step();
  const auto old = source.state_dict();
  const auto group = old.toGenericDict().at("param_groups").toListRef()[0].toGenericDict();
  for (const char* key : {"maximize", "amsgrad", "foreach", "differentiable", "fused", "capturable",
                          "decoupled_weight_decay"}) {
    CHECK(group.erase(key) == 1);
  }
  old.toGenericDict().at("state").toGenericDict().at(0).toGenericDict().insert_or_assign("step", 7);
  Adam target({p}, AdamOptions(0.5));
  target.load_state_dict(old);
  CHECK(target.param_groups()[0].options().get_lr() == 1e-3);
  const auto state = target.state_dict().toGenericDict().at("state").toGenericDict().at(0);
  CHECK(state.toGenericDict().at("step").toTensor().item<float>() == 7);

  CHECK_THROWS_WITH(target.load_state_dict(AdamW({p}).state_dict()),
                    ContainsSubstring("expected Adam state, got AdamW state"));
}

TEST_CASE("training that switches from C++ to Python and back produces the same final values",
          "[python]") {
  std::vector<Case> cases;
  for (const auto kernels : {Kernels::fused, Kernels::foreach}) {
    for (const bool tensor_lr : {false, true}) {
      if (tensor_lr && kernels == Kernels::foreach) continue;
      cases.push_back(make_case<AdamW, AdamWOptions>(
          "AdamW", {torch::kBFloat16, kernels, true, 0.1, false, tensor_lr}));
      cases.back().name = "swap" + std::to_string(cases.size());
      cases.back().midway = "swap";
    }
  }
  const sconce::test::TempDir folder;
  std::map<std::string, sconce::test::Result> ours;
  for (const auto& c : cases) ours[c.name] = sconce::test::train(c, folder);
  int compared = 0;
  sconce::test::ask_python(folder, cases, [&](const auto& name, const auto& key, const auto& rest) {
    if (key.starts_with("group.")) return;
    INFO(name << " " << key);
    const auto& tensor = ours.at(name).tensors.at(key);
    CHECK(sconce::test::same_bits(tensor, sconce::test::from_hex(rest, tensor)));
    ++compared;
  });
  CHECK(compared == 3 * (6 + 5 * 4));

  for (const auto& c : cases) {
    const auto parameters = sconce::test::make_parameters(c.dtype);
    const auto fresh = c.make(parameters, c.extra);
    fresh->load_state_dict(sconce::io::load_torch(folder.path() / (c.name + ".python.pt")));
    auto result = sconce::test::result_of(*fresh, parameters);
    for (const auto& [key, tensor] : ours.at(c.name).tensors) {
      if (key.starts_with("state.")) CHECK(sconce::test::same_bits(result.tensors.at(key), tensor));
    }
    CHECK(result.options == ours.at(c.name).options);
  }
}
