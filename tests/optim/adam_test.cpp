#include "sconce/optim/adam.hpp"

#include "catch.hpp"
#include "optim/training.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/host_reads.hpp"

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

}  // namespace

TEST_CASE("Adam and AdamW match Python's with the same kernels", "[python]") {
  auto cases = grid<Adam, AdamOptions>("Adam");
  const auto more = grid<AdamW, AdamWOptions>("AdamW");
  cases.insert(cases.end(), more.begin(), more.end());
  CHECK(sconce::test::compare_with_python(cases) == 8648);
}

TEST_CASE("a skipped AdamW step leaves parameters, moments, and step counts unchanged") {
  for (const bool amsgrad : {false, true}) {
    const auto c = make_case<AdamW, AdamWOptions>(
        "AdamW", {torch::kFloat, Kernels::fused, amsgrad, 0.1, false, false});
    auto parameters = sconce::test::make_parameters(torch::kFloat);
    const auto scaled = c.make(parameters, c.extra);
    auto expected = sconce::test::make_parameters(torch::kFloat);
    const auto plain = c.make(expected, c.extra);  // it never sees the steps that are skipped
    for (const int step : {0, 1, 2, 3, 4, 5}) {
      INFO("step " << step);
      sconce::test::set_gradients(parameters, step);
      for (auto& p : parameters) {
        if (p.grad().defined()) p.mutable_grad().mul_(8);
      }
      const auto before = sconce::test::copies(sconce::test::result_of(*scaled, parameters));
      const bool skipped = step % 2 == 0;
      scaled->step_with_amp_scaling(torch::full({1}, 8.0), torch::full({1}, skipped ? 1.0 : 0.0));
      const auto after = sconce::test::result_of(*scaled, parameters).tensors;
      if (skipped && step > 0) {
        CHECK(sconce::test::same_bits(before, after));
      } else if (skipped) {  // the state is there now, and zero
        for (const auto& [key, tensor] : after) {
          if (key.starts_with("state.")) CHECK(tensor.eq(0).all().item<bool>());
        }
        CHECK(after.at("parameter.0").equal(before.at("parameter.0")));
      } else {
        sconce::test::set_gradients(expected, step);
        plain->step();
        const auto theirs = sconce::test::result_of(*plain, expected).tensors;
        for (const auto& [key, tensor] : theirs) CHECK(after.at(key).equal(tensor));
      }
    }
  }
}

TEST_CASE(
    "fused AdamW reads one step count per parameter on the host, and other kernels read nothing") {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);  // five of six have a gradient
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    AdamW optimizer(parameters, AdamWOptions(), {.kernels = kernels});
    optimizer.step();
    const sconce::test::HostReads reads;
    optimizer.step();
    CHECK(reads.count() == (kernels == Kernels::fused ? 5 : 0));
  }
  AdamW optimizer(parameters, AdamWOptions());
  const auto scale = torch::ones({});
  const auto found_inf = torch::zeros({});
  const sconce::test::HostReads reads;
  optimizer.step_with_amp_scaling(scale, found_inf);
  CHECK(reads.count() == 5);
  AdamW with_tensor(parameters, AdamWOptions(), {.lr = torch::tensor(0.1F)});
  const auto at_construction = reads.count();
  with_tensor.step();
  CHECK(reads.count() - at_construction == 5 + 1);
}

TEST_CASE("Adam and AdamW reject invalid options, as defaults and in every group") {
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
        ContainsSubstring("expected a number as lr with Kernels::foreach, got a tensor"));
    auto sparse = p();
    sparse.mutable_grad() = torch::ones({2}).to_sparse();
    for (const auto kernels : {Kernels::automatic, Kernels::foreach, Kernels::for_loop}) {
      CHECK_THROWS_WITH(Optimizer({sparse}, Options(), {.kernels = kernels}).step(),
                        ContainsSubstring("expected dense gradients"));
    }
    const auto dense = p();
    dense.mutable_grad() = torch::ones({2});
    CHECK_THROWS(Optimizer({dense, sparse}).step());
    CHECK(dense.equal(torch::ones({2})));  // not half a step
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
                    ContainsSubstring("expected the state of an Adam, got that of an AdamW"));
}

TEST_CASE("archives of AdamW load into LibTorch's AdamW and back") {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);
  AdamW ours(parameters, AdamWOptions(0.01), {.kernels = Kernels::for_loop});
  torch::optim::AdamW theirs(parameters, AdamWOptions(0.5));
  ours.step();
  ours.step();
  std::stringstream to_theirs;
  torch::save(ours, to_theirs);
  torch::load(theirs, to_theirs);
  const auto* state = static_cast<const torch::optim::AdamWParamState*>(
      theirs.state().at(parameters[0].unsafeGetTensorImpl()).get());
  CHECK(state->step() == 2);
  CHECK(theirs.param_groups()[0].options().get_lr() == 0.01);

  const auto before = sconce::test::copies(sconce::test::result_of(ours, parameters));
  std::stringstream to_ours;
  torch::save(theirs, to_ours);
  AdamW again(parameters, AdamWOptions());
  torch::load(again, to_ours);
  CHECK(sconce::test::same_bits(before, sconce::test::result_of(again, parameters).tensors));
}

TEST_CASE("training that switches from C++ to Python and back ends with the same numbers",
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
