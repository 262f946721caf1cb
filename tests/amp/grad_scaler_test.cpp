#include "sconce/amp/grad_scaler.hpp"

#include <torch/version.h>

#include <cmath>
#include <limits>
#include <map>

#include "amp/grad_scaler_script.hpp"
#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/amp_scaling.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/ask_python.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::amp::AutocastGuard;
using sconce::amp::GradScaler;
using sconce::amp::GradScalerOptions;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::lr_scheduler::CosineAnnealingLR;
using sconce::test::HostReads;
using sconce::test::Tensors;
using sconce::test::Warnings;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// Plain SGD that records what the scaler passes to it.
class RecordingSGD : public torch::optim::SGD, public sconce::optim::AmpScaling {
 public:
  explicit RecordingSGD(std::vector<torch::Tensor> params)
      : SGD(std::move(params), torch::optim::SGDOptions(0.5)) {}

  bool step_supports_amp_scaling() const override { return supports; }

  void step_with_amp_scaling(const torch::Tensor& scale, const torch::Tensor& found) override {
    ++amp_steps;
    grad_scale = scale;
    found_inf = found;
  }

  bool supports = true;
  int amp_steps = 0;
  torch::Tensor grad_scale, found_inf;
};

torch::Tensor parameter_of(const torch::Tensor& value) {
  return value.clone().requires_grad_();
}

// Sets the gradient of `p` to this value multiplied by the loss scale.
void backward(GradScaler& scaler, const torch::Tensor& p, float gradient) {
  p.mutable_grad() = torch::Tensor();
  scaler.scale((p * gradient).sum()).backward();
}

GradScaler cpu_scaler(GradScalerOptions options = {}) {
  options.device = torch::kCPU;
  GradScaler scaler(options);
  REQUIRE(scaler.is_enabled());
  return scaler;
}

// Maps the prefixes of Python's error messages, with underscores instead of spaces, to the prefixes
// of the corresponding sconce messages.
const std::map<std::string, std::string>& refusals() {
  static const std::map<std::string, std::string> pairs = {
      {"Attempted_step", "GradScaler::step: expected a call to scale(loss)"},
      {"Attempted_unscale_", "GradScaler::unscale_: expected a call to scale(loss)"},
      {"Attempted_update", "GradScaler::update: expected a call to scale(loss)"},
      {"Attempting_to_unscale_FP16_gradients",
       "GradScaler::unscale_: expected gradients with more precision than float16"},
      {"Closure_use_is_not", "GradScaler::step: expected no closure"},
      {"No_inf_checks_were_recorded_for", "GradScaler::step: expected a gradient to check"},
      {"No_inf_checks_were_recorded_prior",
       "GradScaler::update: expected unscale_ or step to have checked"},
      {"'int'_object_has_no", "GradScaler::step: expected gradients checked"},
      {"The_source_state_dict_is_empty",
       "GradScaler::load_state_dict: expected the state of an enabled scaler"},
      {"step()_has_already", "GradScaler::step: expected one call per optimizer"},
      {"unscale_()_has_already", "GradScaler::unscale_: expected one call per optimizer"},
      {"unscale_()_is_being_called_after", "GradScaler::unscale_: expected a call before step"}};
  return pairs;
}

// Returns whether sconce's error corresponds to Python's error, and counts each kind of error.
bool same_refusal(const std::string& actual, const std::string& expected,
                  std::map<std::string, int>& kinds) {
  // LibTorch itself throws this error: version 2.11 cannot compute the norm of sparse gradients for
  // clipping.
  if (expected.starts_with("refused:Could_not_run_'aten::linalg_vector_norm'")) {
    return actual.starts_with("refused:Could not run 'aten::linalg_vector_norm'");
  }
  for (const auto& [theirs, ours] : refusals()) {
    if (!expected.starts_with("refused:" + theirs)) continue;
    ++kinds[theirs];
    return actual.starts_with("refused:sconce::amp::" + ours);
  }
  return false;
}

// A small network and its data for training in float16 under autocast.
struct Float16Training {
  torch::nn::Sequential net{torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2)};
  torch::Tensor x = torch::randn({16, 4}), y = torch::randn({16, 2});
  GradScaler scaler;

  explicit Float16Training(torch::Device device)
      : scaler({.device = device.type(), .init_scale = 1024}) {
    net->to(device);
    x = x.to(device);
    y = y.to(device);
    REQUIRE(scaler.is_enabled());
  }

  // Returns how many times the host reads a value from the device in a complete step, including the
  // optimizer step.
  int64_t reads_of_step(torch::optim::Optimizer& optimizer) {
    CosineAnnealingLR scheduler(optimizer, /*T_max=*/10);
    const HostReads reads;
    torch::Tensor loss;
    {
      const AutocastGuard guard(x.device().type(), {.dtype = torch::kHalf});
      const auto out = net->forward(x);
      REQUIRE(out.scalar_type() == torch::kHalf);
      loss = torch::mse_loss(out, y);
    }
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    sconce::nn::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
    scheduler.step();
    return reads.count();
  }
};

}  // namespace

TEST_CASE(
    "GradScaler has the same defaults as in Python and, without CUDA, warns and disables itself",
    "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "grad_scaler.py", "defaults");
  std::map<std::string, std::string> theirs;
  for (std::string name, value; file >> name >> value;) theirs[name] = value;
  const GradScalerOptions ours;
  CHECK(theirs.at("device") == c10::DeviceTypeName(ours.device, /*lower_case=*/true));
  CHECK(std::stod(theirs.at("init_scale")) == ours.init_scale);
  CHECK(std::stod(theirs.at("growth_factor")) == ours.growth_factor);
  CHECK(std::stod(theirs.at("backoff_factor")) == ours.backoff_factor);
  CHECK(std::stoll(theirs.at("growth_interval")) == ours.growth_interval);
  CHECK((theirs.at("enabled") == "True") == ours.enabled);
  CHECK(theirs.size() == 8);

  const Warnings warnings;
  GradScaler scaler;
  CHECK((theirs.at("default_is_enabled") == "True") == scaler.is_enabled());
  CHECK((theirs.at("default_warns") == "True") == !warnings.messages().empty());
  CHECK(scaler.is_enabled() == (sconce::num_gpus() > 0));
}

TEST_CASE("a GradScaler matches Python's GradScaler in 300 call sequences", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "grad_scaler.py", "scripts");
  sconce::test::Script script;
  std::map<std::string, int> kinds, facts;
  Tensors tensors;
  std::string command, note;
  for (std::string line; std::getline(file, line);) {
    INFO(command << "\n" << line);
    const std::string text = line.substr(2);
    const auto space = text.find(' ');
    if (line[0] == '>') {
      REQUIRE(tensors.empty());  // all tensors of the previous command were compared
      command = text;
      note = script.run(command);
    } else if (line[0] == '=') {
      const auto expected = text.substr(0, space);
      INFO(note);
      REQUIRE((note == expected || same_refusal(note, expected, kinds)));
      REQUIRE(script.state() == text.substr(space + 1));
      if (script.current() != nullptr) tensors = script.current()->tensors();
    } else if (line[0] == '.') {
      const auto name = text.substr(0, space);
      REQUIRE(tensors.contains(name));
      const auto actual = sconce::test::dump(tensors.at(name));
      const auto& kernels = script.current()->kernels;
      INFO(actual);
      if (kernels == "fused" || kernels == "foreach") REQUIRE(actual == text.substr(space + 1));
      REQUIRE(sconce::test::close(actual, text.substr(space + 1), tensors.at(name).scalar_type()));
      tensors.erase(name);
    } else {
      facts[text.substr(space + 1)] = std::stoi(text);
    }
  }
  // The scripts must cover all of the intended cases.
  CHECK(facts["scripts"] == 300);
  CHECK(facts["stepped"] > 500);
  CHECK(facts["skipped"] > 300);
  CHECK(facts["skipped first steps that leave Python's momentum unwritten"] > 5);
  for (const std::string kernels : {"stock", "for_loop", "foreach", "fused"}) {
    for (const std::string name : {"SGD", "Adam", "AdamW"}) CHECK(facts[kernels + " " + name] > 10);
    const bool has_adagrad =
        kernels != "stock" && (kernels != "fused" || TORCH_VERSION_MINOR >= 15);
    if (has_adagrad) CHECK(facts[kernels + " Adagrad"] > 10);
  }
  for (const std::string name : {"RMSprop", "NAdam"}) {
    for (const std::string kernels : {"for_loop ", "foreach "}) CHECK(facts[kernels + name] > 10);
  }
  CHECK(kinds.size() == refusals().size());
}

TEST_CASE(
    "on the CPU, a scaler adds no host reads with fused optimizers and one host read with "
    "non-fused optimizers") {
  torch::manual_seed(0);
  Float16Training training(torch::kCPU);
  const auto params = training.net->parameters();
  const auto before = params[0].clone();
  torch::optim::SGD stock(params, torch::optim::SGDOptions(0.1));
  sconce::optim::SGD fused(params, torch::optim::SGDOptions(0.1), {.kernels = Kernels::fused});
  sconce::optim::SGD foreach (params, torch::optim::SGDOptions(0.1), {.kernels = Kernels::foreach});
  sconce::optim::AdamW adamw(params, torch::optim::AdamWOptions(0.1), {.kernels = Kernels::fused});
  for (int i = 0; i < 2; ++i) {
    CHECK(training.reads_of_step(fused) == 0);
    CHECK(training.reads_of_step(stock) == 1);
    CHECK(training.reads_of_step(foreach) == 1);
    // On the CPU, Adam's fused kernel itself reads the step count of each parameter.
    const auto with_scaler = training.reads_of_step(adamw);
    const HostReads reads;
    adamw.step();
    CHECK(with_scaler == reads.count());
    CHECK(with_scaler == static_cast<int64_t>(params.size()));
  }
  CHECK_FALSE(params[0].equal(before));
}

TEST_CASE(
    "a scaler passes found_inf to an optimizer that supports it, and passes the scale unless "
    "unscale_ was called") {
  const auto p = parameter_of(torch::ones({2}));
  RecordingSGD optimizer({p});
  auto scaler = cpu_scaler({.init_scale = 8});
  backward(scaler, p, 3);
  scaler.step(optimizer);
  CHECK(optimizer.grad_scale.item<float>() == 8);
  CHECK(optimizer.found_inf.item<float>() == 0);
  CHECK(p.grad().equal(torch::full({2}, 24.0F)));
  scaler.update();

  backward(scaler, p, inf);
  scaler.unscale_(optimizer);
  scaler.step(optimizer);
  CHECK_FALSE(optimizer.grad_scale.defined());
  CHECK(optimizer.found_inf.item<float>() == 1);
  scaler.update();
  CHECK(scaler.get_scale() == 4);

  optimizer.supports = false;
  backward(scaler, p, 3);
  scaler.step(optimizer);
  CHECK(optimizer.amp_steps == 2);
  CHECK(p.detach().equal(torch::full({2}, -0.5F)));
}

TEST_CASE(
    "a GradScaler halves the scale and skips the step if gradients are infinite, and doubles the "
    "scale after enough finite steps") {
  const auto p = parameter_of(torch::ones({2}));
  torch::optim::SGD optimizer({p}, torch::optim::SGDOptions(0.5));
  auto scaler = cpu_scaler({.init_scale = 8, .growth_interval = 2});
  const auto step = [&](float gradient) {
    backward(scaler, p, gradient);
    scaler.step(optimizer);
    scaler.update();
  };
  step(inf);
  CHECK(p.detach().equal(torch::ones({2})));
  CHECK(scaler.get_scale() == 4);
  step(1);
  CHECK(scaler.state_dict().toGenericDict().at("_growth_tracker") == 1);
  step(1);
  CHECK(p.detach().equal(torch::zeros({2})));
  CHECK(scaler.get_scale() == 8);
  CHECK(scaler.state_dict().toGenericDict().at("_growth_tracker") == 0);
}

TEST_CASE(
    "a GradScaler scales lists of tensors and preserves their dtypes, and a disabled GradScaler "
    "changes nothing") {
  const std::vector<torch::Tensor> losses = {torch::ones({2}, torch::kHalf), torch::ones({})};
  auto scaler = cpu_scaler({.init_scale = 8});
  const auto scaled = scaler.scale(losses);
  CHECK(scaled[0].equal(torch::full({2}, 8.0, torch::kHalf)));
  CHECK(scaled[1].equal(torch::full({}, 8.0F)));
  CHECK(scaler.scale(std::vector<torch::Tensor>{}).empty());

  GradScaler disabled({.device = torch::kCPU, .growth_factor = 0, .enabled = false});
  const auto p = parameter_of(torch::ones({2}));
  torch::optim::SGD optimizer({p}, torch::optim::SGDOptions(0.5));
  CHECK(disabled.scale(losses)[0].is_same(losses[0]));
  CHECK(disabled.scale(losses[1]).is_same(losses[1]));
  CHECK(disabled.get_scale() == 1);
  CHECK(disabled.state_dict().toGenericDict().empty());
  disabled.load_state_dict(3);  // ignored, as in Python
  p.mutable_grad() = torch::ones({2});
  disabled.unscale_(optimizer);
  CHECK(disabled.step(optimizer, [] { return torch::full({}, 7.0F); }).item<float>() == 7);
  disabled.update();
  CHECK(p.detach().equal(torch::full({2}, 0.5F)));
}

TEST_CASE(
    "a GradScaler rejects invalid factors, calls to step before scale, and float16 gradients") {
  CHECK_THROWS_WITH(
      cpu_scaler({.growth_factor = 1}),
      ContainsSubstring("sconce::amp::GradScaler: expected growth_factor > 1, got 1"));
  CHECK_THROWS_WITH(
      cpu_scaler({.backoff_factor = 1}),
      ContainsSubstring("sconce::amp::GradScaler: expected backoff_factor < 1, got 1"));
  const auto p = parameter_of(torch::ones({2}, torch::kHalf));
  torch::optim::SGD optimizer({p}, torch::optim::SGDOptions(0.5));
  auto scaler = cpu_scaler({.init_scale = 8});
  CHECK_THROWS_WITH(scaler.step(optimizer), ContainsSubstring("expected a call to scale(loss)"));
  backward(scaler, p, 1);
  CHECK_THROWS_AS(scaler.unscale_(optimizer), c10::ValueError);
  CHECK(p.grad().equal(torch::full({2}, 8.0, torch::kHalf)));
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<GradScaler>);
}

TEST_CASE("a GradScaler rejects an invalid state dict and keeps its current state") {
  const auto p = parameter_of(torch::ones({2}));
  auto scaler = cpu_scaler({.init_scale = 8, .growth_interval = 2});
  backward(scaler, p, 1);
  const auto before = scaler.state_dict();
  const auto refused = [&](const c10::IValue& state, const std::string& text) {
    CHECK_THROWS_WITH(
        scaler.load_state_dict(state),
        ContainsSubstring("sconce::amp::GradScaler::load_state_dict: expected " + text));
    CHECK(scaler.state_dict() == before);
  };
  refused(3, "a dict, got Int");
  refused(cpu_scaler({}).state_dict().toGenericDict().at("scale"), "a dict, got Double");
  const auto refused_value = [&](const char* key, const c10::IValue& value,
                                 const std::string& text) {
    const auto state = cpu_scaler({}).state_dict().toGenericDict();
    state.insert_or_assign(key, value);
    refused(state, text);
  };
  refused_value("scale", 1e300, "'scale' to be in the range of float32");
  refused_value("scale", std::nan(""), "'scale' to be in the range of float32");
  refused_value("scale", "much", "a number for 'scale', got String");
  refused_value("growth_interval", -1, "'growth_interval' to be at least 0");
  refused_value("growth_interval", 2.5, "an int for 'growth_interval', got Double");
  refused_value("_growth_tracker", -1, "'_growth_tracker' to be at least 0");
  refused_value("_growth_tracker", int64_t{1} << 31, "'_growth_tracker' to be below 2^31");
  auto lacking = cpu_scaler({}).state_dict().toGenericDict();
  CHECK(lacking.erase("backoff_factor") == 1);
  refused(lacking, "a dict with the key 'backoff_factor'");
}

TEST_CASE(
    "a GradScaler detects sparse float16 gradients whose duplicate entries overflow when summed") {
  const auto p = parameter_of(torch::ones({3, 1}, torch::kHalf));
  RecordingSGD optimizer({p});
  auto scaler = cpu_scaler({.init_scale = 1});
  static_cast<void>(scaler.scale(torch::ones({})));  // creates the scale
  const auto twice = torch::tensor({{1, 1}}, torch::kLong);
  p.mutable_grad() = torch::sparse_coo_tensor(twice, torch::full({2, 1}, 40000.0, torch::kHalf),
                                              {3, 1}, torch::kHalf);
  scaler.step(optimizer);
  CHECK(optimizer.found_inf.item<float>() == 1);
}

TEST_CASE("a parameter that is listed twice in an optimizer is unscaled only once") {
  const auto p = parameter_of(torch::ones({2}));
  torch::optim::SGD optimizer({p, p}, torch::optim::SGDOptions(0.5));
  auto scaler = cpu_scaler({.init_scale = 8});
  backward(scaler, p, 3);
  scaler.unscale_(optimizer);
  CHECK(p.grad().equal(torch::full({2}, 3.0F)));
}

TEST_CASE("with default kernels, SGD trains on sparse gradients with a GradScaler") {
  const auto p = parameter_of(torch::ones({3, 1})), dense = parameter_of(torch::ones({1}));
  sconce::optim::SGD optimizer({dense, p}, torch::optim::SGDOptions(0.5));
  auto scaler = cpu_scaler({.init_scale = 8});
  for (const float gradient : {inf, 2.0F}) {
    optimizer.zero_grad();
    const auto rows = torch::embedding(p, torch::tensor({1, 1}, torch::kLong), -1, false, true);
    scaler.scale((rows * gradient).sum() + dense.sum()).backward();
    REQUIRE(p.grad().is_sparse());
    scaler.step(optimizer);
    scaler.update();
    const float expected = gradient == inf ? 1.0F : -1.0F;
    CHECK(p.detach().reshape({-1}).equal(torch::tensor({1.0F, expected, 1.0F})));
    CHECK(dense.item<float>() == (gradient == inf ? 1.0F : 0.5F));
  }
}

TEST_CASE("on a GPU, bfloat16 gradients are rejected before any gradient is unscaled", "[gpu]") {
  sconce::test::require_gpu();
  const auto p = parameter_of(torch::ones({2}, sconce::gpu()));
  const auto q = parameter_of(torch::ones({2}, sconce::gpu()).to(torch::kBFloat16));
  torch::optim::SGD optimizer({p, q}, torch::optim::SGDOptions(0.5));
  GradScaler scaler({.init_scale = 8});
  scaler.scale(p.sum() + q.sum()).backward();
  CHECK_THROWS_AS(scaler.unscale_(optimizer), c10::ValueError);
  CHECK(p.grad().cpu().equal(torch::full({2}, 8.0F)));
}

TEST_CASE("on a GPU, a scaler is enabled by default and adds no host reads with a fused optimizer",
          "[gpu]") {
  sconce::test::require_gpu();
  CHECK(GradScaler().is_enabled());
  Float16Training training(sconce::gpu());
  const auto params = training.net->parameters();
  const auto before = params[0].clone();
  sconce::optim::AdamW adamw(params, torch::optim::AdamWOptions(0.1), {.kernels = Kernels::fused});
  torch::optim::SGD stock(params, torch::optim::SGDOptions(0.1));
  for (int i = 0; i < 2; ++i) {
    CHECK(training.reads_of_step(adamw) == 0);
    CHECK(training.reads_of_step(stock) == 1);
  }
  CHECK_FALSE(params[0].equal(before));
}

TEST_CASE("if gradients on two devices are infinite, the fused step is skipped on both devices",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto on_cpu = parameter_of(torch::ones({2})),
             on_gpu = parameter_of(torch::ones({2}).cuda());
  sconce::optim::SGD optimizer({on_cpu, on_gpu}, torch::optim::SGDOptions(0.5),
                               {.kernels = Kernels::fused});
  RecordingSGD recording({on_cpu, on_gpu});
  GradScaler scaler({.init_scale = 8});
  for (const float gradient : {inf, 2.0F}) {
    backward(scaler, on_gpu, gradient);
    backward(scaler, on_cpu, gradient);
    scaler.step(recording);
    CHECK(recording.found_inf.item<float>() == (gradient == inf ? 1 : 0));
    scaler.step(optimizer);
    scaler.update();
    const auto expected = torch::full({2}, gradient == inf ? 1.0F : 0.0F);
    CHECK(on_cpu.detach().equal(expected));
    CHECK(on_gpu.detach().cpu().equal(expected));
  }
  CHECK(scaler.get_scale() == 4);
}

TEST_CASE("if a gradient is infinite on only one device, the fused step is skipped on both devices",
          "[gpu]") {
  sconce::test::require_gpu();
  const bool is_on_gpu = GENERATE(true, false);
  const auto on_cpu = parameter_of(torch::ones({2})),
             on_gpu = parameter_of(torch::ones({2}).cuda());
  sconce::optim::SGD optimizer({on_cpu, on_gpu}, torch::optim::SGDOptions(0.5),
                               {.kernels = Kernels::fused});
  GradScaler scaler({.init_scale = 8});
  backward(scaler, on_gpu, is_on_gpu ? inf : 2.0F);
  backward(scaler, on_cpu, is_on_gpu ? 2.0F : inf);
  scaler.step(optimizer);
  scaler.update();
  CHECK(on_cpu.detach().equal(torch::ones({2})));
  CHECK(on_gpu.detach().cpu().equal(torch::ones({2})));
  CHECK(scaler.get_scale() == 4);
}
