// Records networks in C++, exports the same networks from Python, and compares both results with
// the original networks.
#include <ATen/Version.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <map>

#include "catch.hpp"
#include "program/exported_network.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/backends.hpp"
#include "sconce/devices.hpp"
#include "support/require_gpu.hpp"
#include "support/temp_dir.hpp"

using sconce::program::Program;
using sconce::test::compare_in_python;
using sconce::test::ExpectedOutputs;
using sconce::test::ExportedNetwork;
using sconce::test::Network;
using sconce::test::record_and_check;
using sconce::test::TempDir;
using sconce::test::Tensors;

namespace {

std::vector<ExportedNetwork> in_float32() {
  std::vector<ExportedNetwork> all;
  for (auto& network : sconce::test::networks()) all.push_back({std::move(network)});
  return all;
}

Tensors floating_to(Tensors tensors, torch::ScalarType type) {
  for (auto& tensor : tensors) {
    if (tensor.is_floating_point()) tensor = tensor.to(type);
  }
  return tensors;
}

// Without AVX-512, LibTorch throws an error for an LSTM under autocast, in both C++ and Python.
bool runs_lstm_under_autocast() {
  return at::get_cpu_capability() == "AVX512";
}

void skip_unless_all_ran() {
  if (!runs_lstm_under_autocast()) SKIP("an LSTM under autocast needs a CPU with AVX-512");
}

// Returns each network twice: with bfloat16 weights, and under autocast.
std::vector<ExportedNetwork> in_bfloat16() {
  std::vector<ExportedNetwork> all;
  const auto originals = sconce::test::networks();
  auto converted = sconce::test::networks();  // with the same weights
  for (size_t i = 0; i < originals.size(); ++i) {
    const auto& reference = originals[i].forward;
    auto& network = converted[i];
    network.module->to(torch::kBFloat16);
    network.name += "_bfloat16";
    network.forward = [forward = network.forward](const Tensors& in) {
      return floating_to(forward(floating_to(in, torch::kBFloat16)), torch::kFloat);
    };
    all.push_back({network, reference});
    if (originals[i].name == "lstm" && !runs_lstm_under_autocast()) continue;
    auto& cast = all.emplace_back(ExportedNetwork{originals[i], reference}).network;
    cast.name += "_autocast";
    cast.forward = [reference](const Tensors& in) {
      const sconce::amp::AutocastGuard autocast(torch::kCPU);
      return reference(in);
    };
  }
  return all;
}

// Returns a variant of the network that accepts any sequence length. In the examples, `rows` also
// determines the sequence length, which ranges from 4 to 10.
Network over_lengths(Network network, const std::string& input) {
  network.name += "_over_lengths";
  network.dynamic.push_back({.input = input, .dim = 1, .name = "length"});
  network.example = [example = network.example, input](int64_t rows) {
    auto inputs = example(rows);
    // A package requires inputs with the same strides as its example.
    inputs[input] = inputs[input].slice(1, 0, 3 + rows % 10).contiguous();
    return inputs;
  };
  return network;
}

template <class Module>
Network recurrent(const std::string& name, Module net) {
  net->eval();
  return {name, net.ptr(),
          [net](const Tensors& in) mutable {
            const auto result = net->forward(in[0]);
            return Tensors{std::get<0>(result)};
          },
          [](int64_t rows) { return sconce::StateDict{{"x", torch::randn({rows, 12, 8})}}; }};
}

// Returns recurrent layers with fixed and with arbitrary sequence lengths, and the GPT with
// arbitrary lengths.
std::vector<ExportedNetwork> sequence_networks() {
  torch::manual_seed(0);
  const auto with = [](auto options) { return options.batch_first(true); };
  using namespace torch::nn;
  std::vector<Network> networks = {
      recurrent("lstm", LSTM(with(LSTMOptions(8, 16)).num_layers(2))),
      recurrent("lstm_both_ways", LSTM(with(LSTMOptions(8, 16)).bidirectional(true))),
      recurrent("lstm_projected", LSTM(with(LSTMOptions(8, 16)).proj_size(4))),
      recurrent("gru", GRU(with(GRUOptions(8, 16)).num_layers(2))),
      recurrent("gru_both_ways", GRU(with(GRUOptions(8, 16)).bidirectional(true))),
      recurrent("rnn", RNN(with(RNNOptions(8, 16)).num_layers(2))),
      recurrent("rnn_relu", RNN(with(RNNOptions(8, 16)).nonlinearity(torch::kReLU)))};
  for (size_t i = 0, count = networks.size(); i < count; ++i) {
    networks.push_back(over_lengths(networks[i], "x"));
  }
  auto gpt = sconce::test::one_input("gpt", sconce::test::Gpt(), sconce::test::tokens);
  gpt.module->eval();
  networks.push_back(over_lengths(gpt, "tokens"));
  std::vector<ExportedNetwork> all;
  for (auto& network : networks) all.push_back({std::move(network)});
  return all;
}

using Outputs = std::map<std::string, std::vector<ExpectedOutputs>>;

Outputs record_all(const std::vector<ExportedNetwork>& all, const TempDir& folder) {
  torch::manual_seed(1);
  Outputs outputs;
  for (const auto& exported : all) {
    outputs.emplace(exported.network.name, record_and_check(exported, folder.path()));
  }
  return outputs;
}

void check_packages(const Outputs& all, const TempDir& folder) {
  for (const auto& [name, outputs] : all) {
    INFO(name);
    torch::inductor::AOTIModelPackageLoader package((folder.path() / (name + ".pt2")).string());
    for (const auto& expected : outputs) expected.check(package.run(expected.inputs));
  }
}

}  // namespace

TEST_CASE(
    "a network recorded in bfloat16 or under autocast is as accurate as the original C++ network") {
  const TempDir folder;
  record_all(in_bfloat16(), folder);
  skip_unless_all_ran();
}

TEST_CASE("a recorded network's Python ExportedProgram returns the same outputs as the network",
          "[python]") {
  const TempDir folder;
  record_all(in_float32(), folder);
  CHECK(compare_in_python(folder, "--onnx mlp,lstm").empty());
}

TEST_CASE("each recorded network runs in ONNX Runtime and as a package", "[.][slow]") {
  const TempDir folder;
  const auto outputs = record_all(in_float32(), folder);
  CHECK(compare_in_python(folder, "--onnx all --package all").empty());
  check_packages(outputs, folder);
}

TEST_CASE(
    "each network recorded in bfloat16 runs in Python and as a package, but not in ONNX Runtime",
    "[.][slow]") {
  const TempDir folder;
  const auto outputs = record_all(in_bfloat16(), folder);
  const auto refusals = compare_in_python(folder, "--onnx all --package all");
  CHECK(refusals.size() == outputs.size());
  for (const auto& refusal : refusals) {
    INFO(refusal.network << ": " << refusal.reason);
    CHECK(refusal.kind == "onnx");
  }
  check_packages(outputs, folder);
  skip_unless_all_ran();
}

TEST_CASE(
    "recurrent networks and a GPT run at any batch size and, if Python supports it, at any "
    "sequence length",
    "[.][slow]") {
  const TempDir folder;
  auto outputs = record_all(sequence_networks(), folder);
  // The ONNX comparison runs in a separate process, because ONNX's exporter replaces the
  // decompositions of recurrent layers.
  for (const auto& refusal : compare_in_python(folder, "--package all")) {
    INFO(refusal.network << " " << refusal.kind << ": " << refusal.reason);
    CHECK_THAT(refusal.network, Catch::Matchers::EndsWith("_over_lengths"));
    CHECK_THAT(refusal.network, !Catch::Matchers::StartsWith("gpt"));
    CHECK_THAT(refusal.reason, Catch::Matchers::ContainsSubstring("length"));
    outputs.erase(refusal.network);
  }
  check_packages(outputs, folder);
  for (const auto& refusal : compare_in_python(folder, "--onnx all")) {
    INFO(refusal.network << " " << refusal.kind << ": " << refusal.reason);
    if (refusal.network == "lstm_projected") continue;  // ONNX Runtime rejects its initial state
    CHECK_THAT(refusal.network, Catch::Matchers::EndsWith("_over_lengths"));
    CHECK_THAT(refusal.network, !Catch::Matchers::StartsWith("gpt"));
  }
}

namespace {

// Returns the network with its parameters and inputs on a GPU.
Network on_device(Network network, torch::Device device) {
  network.module->to(device);
  network.example = [example = network.example, device](int64_t rows) {
    auto inputs = example(rows);
    for (auto& item : inputs) item.value() = item.value().to(device);
    return inputs;
  };
  return network;
}

// Returns a network whose outputs are the loss and the parameter gradients after a forward and
// backward pass.
Network with_gradients(Network network) {
  network.name += "_gradients";
  network.forward = [module = network.module, forward = network.forward](const Tensors& in) {
    const torch::AutoGradMode enabled(true);
    const auto loss = forward(in)[0].square().sum();
    auto results = torch::autograd::grad({loss}, module->parameters());
    results.insert(results.begin(), loss.detach());
    return results;
  };
  return network;
}

Tensors to_device(Tensors tensors, torch::Device device) {
  for (auto& tensor : tensors) tensor = tensor.to(device);
  return tensors;
}

}  // namespace

TEST_CASE("a program recorded on a GPU runs on any GPU, on the CPU, and in Python", "[gpu]") {
  sconce::test::require_gpu();
  // The CPU does not support TF32, which cuDNN uses for an LSTM by default.
  const sconce::backends::FlagsGuard without_tf32({.cudnn_allow_tf32 = false});
  const TempDir folder;
  const torch::Device first(torch::kCUDA, 0);
  const torch::Device last(torch::kCUDA, static_cast<c10::DeviceIndex>(sconce::num_gpus() - 1));
  std::vector<Network> networks;
  for (const auto& network : sconce::test::networks()) {
    if (network.name != "mlp" && network.name != "gpt" && network.name != "lstm") continue;
    networks.push_back(network);
    if (network.name == "mlp") networks.push_back(with_gradients(network));
  }
  for (const auto& network : networks) {
    const ExportedNetwork exported{on_device(network, last)};
    const auto outputs = record_and_check(exported, folder.path());
    const auto file = folder.path() / (network.name + ".program");
    CHECK(Program::load(file).device() == first);
    for (const auto device : {first, last, torch::Device(torch::kCPU)}) {
      INFO(network.name << " on " << device);
      const auto program = Program::load(file, {.device = device});
      for (const auto& expected : outputs) {
        const auto computed = program.run(to_device(expected.inputs, device));
        CHECK(computed[0].device() == device);
        expected.check(to_device(computed, last));
      }
    }
  }
  CHECK(compare_in_python(folder, "").empty());
}
