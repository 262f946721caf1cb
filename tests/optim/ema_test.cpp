#include "sconce/optim/ema.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "optim/named_states.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/devices.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/lazy.hpp"
#include "support/ask_python.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::ExponentialMovingAverage;
using sconce::test::check_equal;
using sconce::test::copy_of;
using sconce::test::fill_all;
using sconce::test::set_all;
using sconce::test::State;
using sconce::test::state_from;
using sconce::test::TempDir;
using sconce::test::tensors_of;

namespace {

// The same model as in reference/ema.py. The model contains a layer without a bias, integer
// tensors, and a layer that occurs twice.
struct Net : torch::nn::Module {
  Net() {
    register_module("fc", torch::nn::Linear(torch::nn::LinearOptions(37, 5).bias(false)));
    register_module("norm", torch::nn::BatchNorm1d(5));
    const torch::nn::Linear shared(5, 5);
    register_module("first", shared);
    register_module("second", shared);
  }
};

// A model whose values are all 2 and whose averages are all 1.
struct Averaged {
  Averaged() {
    fill_all(net, 1);
    ema.update();
    fill_all(net, 2);
  }

  void check_all(double value) const {
    for (const auto& item : tensors_of(net)) CHECK((item.value() == value).all().item<bool>());
  }

  Net net;
  ExponentialMovingAverage ema{net};
};

}  // namespace

TEST_CASE("averages match Python's bit for bit, even after resuming from a saved state",
          "[python]") {
  const TempDir folder;
  sconce::test::ask_python(folder, "ema.py", "averages");
  const auto cases = sconce::io::load_torch(folder.path() / "averages");
  REQUIRE(cases.toListRef().size() == 36);
  for (const auto& value : cases.toListRef()) {
    const auto example = value.toGenericDict();
    const double decay = example.at("decay").toDouble();
    const bool use_buffers = example.at("use_buffers").toBool();
    INFO("decay " << decay << ", use_buffers " << use_buffers);
    const auto models = example.at("model").toListRef();
    const auto averages = example.at("averaged").toListRef();

    Net net;
    set_all(net, models[0]);
    ExponentialMovingAverage ema(net, {.decay = decay, .use_buffers = use_buffers});
    ExponentialMovingAverage late(net, {.decay = decay, .use_buffers = use_buffers});
    check_equal(ema.state_dict(), state_from(averages[0]));
    for (size_t i = 1; i < models.size(); ++i) {
      set_all(net, models[i]);
      ema.update();
      check_equal(ema.state_dict(), state_from(averages[i]));
      if (i > 3) late.update();
      if (i >= 3) check_equal(late.state_dict(), state_from(averages[i]));
      if (i == 2) late.load_state_dict(state_from(averages[3]));
    }
  }
}

TEST_CASE(
    "SwapGuard swaps the averages into the model and restores the original values at the end of "
    "its scope") {
  Averaged averaged;
  const State own = copy_of(tensors_of(averaged.net));
  const auto* address = averaged.net.parameters()[0].const_data_ptr();
  {
    const ExponentialMovingAverage::SwapGuard guard(averaged.ema);
    averaged.check_all(1);
    CHECK(averaged.net.parameters()[0].requires_grad());
    CHECK_THROWS_WITH(
        averaged.ema.update(),
        ContainsSubstring(
            "sconce::optim::ExponentialMovingAverage::update: expected the model's own values"));
    CHECK_THROWS_WITH(ExponentialMovingAverage::SwapGuard(averaged.ema),
                      ContainsSubstring("ExponentialMovingAverage::SwapGuard: expected the model"));
    averaged.check_all(1);
  }
  check_equal(tensors_of(averaged.net), own);
  CHECK(averaged.net.parameters()[0].const_data_ptr() == address);
  averaged.ema.update();
  CHECK(averaged.ema.n_averaged() == 2);
}

TEST_CASE("SwapGuard restores the model's original values when an exception leaves its scope") {
  Averaged averaged;
  const auto evaluate = [&] {
    const ExponentialMovingAverage::SwapGuard guard(averaged.ema);
    averaged.check_all(1);
    throw std::runtime_error("evaluation failed");
  };
  CHECK_THROWS_AS(evaluate(), std::runtime_error);
  averaged.check_all(2);
}

TEST_CASE(
    "within one autocast scope, layers use the averages inside a SwapGuard and the original values "
    "outside the SwapGuard") {
  torch::nn::Linear net(2, 2);
  fill_all(*net, 1);
  ExponentialMovingAverage ema(*net);
  fill_all(*net, 2);
  const sconce::amp::AutocastGuard autocast(torch::kCPU);
  const auto output = [&] { return net->forward(torch::ones({1, 2}))[0][0].item<float>(); };
  CHECK(output() == 6);
  {
    const ExponentialMovingAverage::SwapGuard guard(ema);
    CHECK(output() == 3);
  }
  CHECK(output() == 6);
}

TEST_CASE("between SwapGuards, optimizer steps update the model's unaveraged parameters") {
  Averaged averaged;
  torch::optim::SGD optimizer(averaged.net.parameters(), 1.0);
  for (int i = 0; i < 2; ++i) {
    for (const auto& p : averaged.net.parameters()) p.mutable_grad() = torch::ones_like(p);
    optimizer.step();
    const ExponentialMovingAverage::SwapGuard guard(averaged.ema);
  }
  // The layer that occurs twice in the model receives two updates per step.
  CHECK((averaged.net.named_parameters()["fc.weight"] == 0).all().item<bool>());
  CHECK((averaged.net.named_parameters()["first.weight"] == -2).all().item<bool>());
}

TEST_CASE("updating and swapping averages performs no host reads") {
  Net net;
  ExponentialMovingAverage ema(net, {.use_buffers = true});
  const sconce::test::HostReads reads;
  for (int i = 0; i < 3; ++i) ema.update();
  {
    const ExponentialMovingAverage::SwapGuard guard(ema);
  }
  CHECK(reads.count() == 0);
  net.parameters()[0][0][0].item();
  CHECK(reads.count() == 1);
}

TEST_CASE(
    "ExponentialMovingAverage rejects an out-of-range decay and tensors whose shape or dtype "
    "changed") {
  torch::nn::Sequential model(sconce::nn::LazyLinear(3));
  for (const double decay : {-0.1, 1.1}) {
    CHECK_THROWS_WITH(ExponentialMovingAverage(*model, {.decay = decay}),
                      ContainsSubstring("sconce::optim::ExponentialMovingAverage: expected decay "
                                        "between 0 and 1"));
  }
  ExponentialMovingAverage early(*model);
  model->forward(torch::ones({2, 4}));
  CHECK_THROWS_WITH(early.update(), ContainsSubstring("expected '0.weight' of shape [0] and type "
                                                      "Float (as at construction), got [3, 4]"));
  CHECK(early.n_averaged() == 0);
  ExponentialMovingAverage in_time(*model);
  model->to(torch::kDouble);
  CHECK_THROWS_WITH(in_time.update(), ContainsSubstring("and type Float (as at construction)"));
  CHECK_THROWS_WITH(ExponentialMovingAverage::SwapGuard(in_time), ContainsSubstring("Double"));
}

TEST_CASE("ExponentialMovingAverage rejects a mismatched state and leaves its averages unchanged") {
  Averaged averaged;
  const State before = copy_of(averaged.ema.state_dict());
  const auto refused = [&](const State& state, const char* text) {
    CHECK_THROWS_WITH(
        averaged.ema.load_state_dict(state),
        ContainsSubstring("sconce::optim::ExponentialMovingAverage::load_state_dict: expected ") &&
            ContainsSubstring(text));
    check_equal(averaged.ema.state_dict(), before);
  };
  State state = copy_of(before);
  for (const auto& item : state) item.value().add_(1);
  state.insert("module.more", torch::ones(1));
  refused(state, "no key 'module.more'");
  state.erase("module.more");
  state["module.first.bias"] = torch::ones(1);
  refused(state, "'module.first.bias' of shape [5], got [1]");
  state["module.first.bias"] = torch::zeros({5}, torch::kByte).view(c10::kFloat4_e2m1fn_x2);
  refused(state,
          "values that can be converted to Float for 'module.first.bias', got a "
          "CPUFloat4_e2m1fn_x2Type");
  state["module.first.bias"] = torch::zeros({5}, torch::kMeta);
  refused(state,
          "values that can be converted to Float for 'module.first.bias', got a MetaFloatType");
  state.erase("module.first.bias");
  refused(state, "a state with the key 'module.first.bias'");
}

TEST_CASE(
    "on a GPU, averages can be stored on the model's device or another device and swapped into the "
    "model",
    "[gpu]") {
  sconce::test::require_gpu();
  Averaged averaged;
  auto& net = averaged.net;
  net.to(sconce::gpu());
  ExponentialMovingAverage with_model(net, {.decay = 0.5, .use_buffers = true});
  ExponentialMovingAverage on_cpu(net, {.decay = 0.5, .use_buffers = true, .device = torch::kCPU});
  fill_all(net, 4);
  {
    const sconce::test::HostReads reads;
    for (int i = 0; i < 2; ++i) with_model.update();
    fill_all(net, 2);
    with_model.update();
    {
      const ExponentialMovingAverage::SwapGuard guard(with_model);
    }
    CHECK(reads.count() == 0);
  }
  fill_all(net, 4);
  on_cpu.update();
  fill_all(net, 2);
  on_cpu.update();
  for (auto* ema : {&with_model, &on_cpu, &averaged.ema}) {
    if (ema == &averaged.ema) ema->update();  // created before the model moved
    const bool on_gpu = ema == &with_model;
    CHECK(ema->state_dict()["module.fc.weight"].device() ==
          (on_gpu ? sconce::gpu() : sconce::cpu()));
    const ExponentialMovingAverage::SwapGuard guard(*ema);
    CHECK(net.parameters()[0].device() == sconce::gpu());
    if (ema != &averaged.ema) averaged.check_all(3);
  }
  averaged.check_all(2);
}
