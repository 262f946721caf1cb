#include "sconce/nn/state_dict.hpp"

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::StateDict;
using sconce::nn::load_state_dict;
using sconce::nn::LoadReport;
using sconce::nn::state_dict;
namespace nn = torch::nn;

namespace {

nn::Sequential three_layers() {
  nn::Sequential net;
  net->push_back("fc1", nn::Linear(3, 4));
  net->push_back("norm", nn::BatchNorm1d(4));
  net->push_back("fc2", nn::Linear(4, 2));
  return net;
}

void check_equal(const nn::Module& a, const nn::Module& b) {
  const auto x = state_dict(a), y = state_dict(b);
  REQUIRE(x.keys() == y.keys());
  for (const auto& item : x) CHECK(torch::equal(item.value(), y[item.key()]));
}

struct Tied : nn::Module {
  nn::Linear first = register_module("first", nn::Linear(3, 3));
  nn::Linear second = register_module("second", first);
};

}  // namespace

TEST_CASE("state_dict returns the same names in the same order as in Python") {
  const auto model = three_layers();
  CHECK(state_dict(*model).keys() ==
        std::vector<std::string>{"fc1.weight", "fc1.bias", "norm.weight", "norm.bias",
                                 "norm.running_mean", "norm.running_var",
                                 "norm.num_batches_tracked", "fc2.weight", "fc2.bias"});
  CHECK(state_dict(*model)["fc1.weight"].is_alias_of(model->parameters()[0]));
  CHECK_FALSE(state_dict(*model)["fc1.weight"].requires_grad());
}

TEST_CASE("load_state_dict copies into the existing parameters") {
  auto from = three_layers(), to = three_layers();
  const auto weight = to->parameters()[0];
  const auto report = load_state_dict(*to, state_dict(*from));
  CHECK(report.missing_keys.empty());
  check_equal(*to, *from);
  CHECK(weight.is_same(to->parameters()[0]));
}

TEST_CASE("load_state_dict loads a state dict from an old PyTorch version exactly as Python does") {
  auto from = three_layers(), to = three_layers();
  to->register_parameter("scale", torch::zeros({}));
  StateDict state;
  for (const auto& item : state_dict(*from)) {
    if (item.key() != "norm.num_batches_tracked") state.insert(item.key(), item.value() + 1);
  }
  state.insert("scale", torch::tensor({2.F}));
  state_dict(*to)["norm.num_batches_tracked"].fill_(7);
  const auto report = load_state_dict(*to, state);
  CHECK(report.missing_keys.empty());
  CHECK(report.mismatched_keys.empty());
  const auto loaded = state_dict(*to);
  CHECK(loaded["fc1.weight"].equal(state["fc1.weight"]));
  CHECK(loaded["norm.num_batches_tracked"].item<int64_t>() == 7);
  CHECK(loaded["scale"].sizes().empty());
  CHECK(loaded["scale"].item<float>() == 2);
  state["scale"] = torch::ones({1, 1});
  CHECK_THROWS_WITH(load_state_dict(*to, state), ContainsSubstring("mismatched: scale of [1, 1]"));
}

TEST_CASE("in strict mode, load_state_dict reports every mismatch and changes nothing") {
  auto model = three_layers();
  const auto before = state_dict(*three_layers());
  load_state_dict(*model, before);
  StateDict state;
  for (const auto& item : state_dict(*three_layers())) {
    if (item.key() == "fc1.bias") continue;
    state.insert(item.key(), item.key() == "fc2.weight" ? torch::ones({4, 4}) : item.value());
  }
  state.insert("fc3.bias", torch::ones({1}));
  CHECK_THROWS_WITH(load_state_dict(*model, state),
                    ContainsSubstring("missing: fc1.bias; unexpected: fc3.bias; mismatched: "
                                      "fc2.weight of [4, 4] for [2, 4]"));
  for (const auto& item : state_dict(*model)) CHECK(torch::equal(item.value(), before[item.key()]));

  auto without_values = before;
  without_values["fc2.bias"] = before["fc2.bias"].to(torch::kMeta);
  CHECK_THROWS_WITH(load_state_dict(*model, without_values),
                    ContainsSubstring("expected a strided tensor with data for 'fc2.bias'"));
  for (const auto& item : state_dict(*model)) CHECK(torch::equal(item.value(), before[item.key()]));

  const auto report = load_state_dict(*model, state, {.strict = false});
  CHECK(report.missing_keys == std::vector<std::string>{"fc1.bias"});
  CHECK(report.unexpected_keys == std::vector<std::string>{"fc3.bias"});
  REQUIRE(report.mismatched_keys.size() == 1);
  CHECK(report.mismatched_keys[0].name == "fc2.weight");
  CHECK(report.mismatched_keys[0].expected == std::vector<int64_t>{2, 4});
  CHECK(report.mismatched_keys[0].found == std::vector<int64_t>{4, 4});
  CHECK(torch::equal(state_dict(*model)["fc1.weight"], state["fc1.weight"]));
  CHECK(torch::equal(state_dict(*model)["fc1.bias"], before["fc1.bias"]));
}

TEST_CASE(
    "the error from load_state_dict lists the first ten names of each kind and counts the rest") {
  nn::Sequential model;
  StateDict state;
  for (int i = 0; i < 12; ++i) {
    model->push_back("a" + std::to_string(i), nn::Linear(nn::LinearOptions(1, 1).bias(false)));
    state.insert("b" + std::to_string(i) + ".weight", torch::ones({1, 1}));
  }
  const auto list = [](const std::string& letter) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      text += (i == 0 ? "" : ", ") + letter + std::to_string(i) + ".weight";
    }
    return text + " and 2 more";
  };
  CHECK_THROWS_WITH(load_state_dict(*model, state),
                    ContainsSubstring("; missing: " + list("a") + "; unexpected: " + list("b")));
}

TEST_CASE(
    "before changing anything, load_state_dict rejects a value whose type cannot be converted") {
  auto model = three_layers();
  StateDict before, state;
  for (const auto& item : state_dict(*model)) before.insert(item.key(), item.value().clone());
  for (const auto& item : state_dict(*three_layers())) state.insert(item.key(), item.value());
  const auto refuse = [&](const torch::Tensor& bias, const std::string& type) {
    state["fc2.bias"] = bias;
    CHECK_THROWS_WITH(
        load_state_dict(*model, state),
        ContainsSubstring("expected values that can be converted to Float for 'fc2.bias', got a " +
                          type));
    for (const auto& item : state_dict(*model)) {
      INFO(item.key());
      CHECK(torch::equal(item.value(), before[item.key()]));
    }
  };
  refuse(torch::zeros({2}, torch::kByte).view(c10::kFloat4_e2m1fn_x2), "CPUFloat4_e2m1fn_x2Type");
  refuse(torch::quantize_per_tensor(torch::ones({2}), 0.1, 0, torch::kQInt8),
         "QuantizedCPUQInt8Type");

  sconce::nn::LazyLinear lazy(2);
  StateDict of_lazy;
  of_lazy.insert("weight", torch::ones({2, 3}));
  of_lazy.insert("bias", torch::zeros({2}, torch::kByte).view(c10::kFloat4_e2m1fn_x2));
  CHECK_THROWS_WITH(load_state_dict(*lazy, of_lazy), ContainsSubstring("Float for 'bias', got"));
  CHECK(sconce::nn::has_uninitialized_params(*lazy));

  state["fc2.bias"] = torch::ones({2}, torch::kChar);
  load_state_dict(*model, state);
  CHECK(torch::equal(state_dict(*model)["fc2.bias"], torch::ones({2})));
}

TEST_CASE("state_dict lists a shared tensor once, and load_state_dict accepts any of its names") {
  Tied model;
  CHECK(state_dict(model).keys() == std::vector<std::string>{"first.weight", "first.bias"});
  StateDict state;
  state.insert("second.weight", torch::ones({3, 3}));
  state.insert("second.bias", torch::ones({3}));
  load_state_dict(model, state);
  CHECK(torch::equal(model.first->weight, torch::ones({3, 3})));
}

TEST_CASE("load_state_dict renames entries and skips entries whose new name is empty") {
  auto from = three_layers(), to = three_layers();
  StateDict state;
  for (const auto& item : state_dict(*from)) state.insert("module." + item.key(), item.value());
  state.insert("epoch", torch::ones({1}));
  load_state_dict(*to, state, {.rename = [](const std::string& name) {
    return name == "epoch" ? "" : name.substr(std::string("module.").size());
  }});
  check_equal(*to, *from);
  CHECK_THROWS_WITH(
      load_state_dict(*to, state, {.rename = [](const std::string&) { return "same"; }}),
      ContainsSubstring("the name of another entry"));
}

TEST_CASE(
    "load_state_dict initializes lazy layers, and leaves them uninitialized if the state does not "
    "match") {
  nn::Sequential lazy;
  lazy->push_back("fc1", sconce::nn::LazyLinear(4));
  lazy->push_back("norm", sconce::nn::LazyBatchNorm1d());
  lazy->push_back("fc2", sconce::nn::LazyLinear(2));
  StateDict wrong;
  for (const auto& item : state_dict(*three_layers())) {
    wrong.insert(item.key(), item.key() == "fc2.bias" ? torch::ones({7}) : item.value());
  }
  CHECK_THROWS_WITH(load_state_dict(*lazy, wrong), ContainsSubstring("mismatched: fc2.weight") &&
                                                       ContainsSubstring("fc2.bias of [7]"));
  CHECK(sconce::nn::has_uninitialized_params(*lazy));
  CHECK_FALSE(lazy->named_parameters()["fc1.weight"].numel() > 0);
  const auto from = three_layers();
  load_state_dict(*lazy, state_dict(*from));
  CHECK_FALSE(sconce::nn::has_uninitialized_params(*lazy));
  check_equal(*lazy, *from);
}

TEST_CASE(
    "for a mismatch in an uninitialized lazy layer, load_state_dict reports no expected size") {
  sconce::nn::LazyLinear lazy(2);
  StateDict wrong;
  wrong.insert("weight", torch::ones({3, 4}));
  wrong.insert("bias", torch::ones({3}));
  const auto report = load_state_dict(*lazy, wrong, {.strict = false});
  REQUIRE(report.mismatched_keys.size() == 2);
  CHECK(report.mismatched_keys[0].name == "weight");
  CHECK_FALSE(report.mismatched_keys[0].expected);
  CHECK(report.mismatched_keys[0].found == std::vector<int64_t>{3, 4});
}
