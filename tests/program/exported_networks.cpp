// Networks that are recorded in C++ and exported by Python, compared with the networks.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <map>

#include "catch.hpp"
#include "program/exported_network.hpp"
#include "sconce/amp/autocast.hpp"
#include "support/temp_dir.hpp"

using sconce::test::compare_in_python;
using sconce::test::ExpectedOutputs;
using sconce::test::ExportedNetwork;
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

// Each network with bfloat16 weights, and each under autocast.
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
    auto& cast = all.emplace_back(ExportedNetwork{originals[i], reference}).network;
    cast.name += "_autocast";
    cast.forward = [reference](const Tensors& in) {
      const sconce::amp::AutocastGuard autocast(torch::kCPU);
      return reference(in);
    };
  }
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

void check_package(const std::string& name, const std::vector<ExpectedOutputs>& outputs,
                   const TempDir& folder) {
  INFO(name);
  torch::inductor::AOTIModelPackageLoader package((folder.path() / (name + ".pt2")).string());
  for (const auto& expected : outputs) expected.check(package.run(expected.inputs));
}

void check_packages(const Outputs& all, const TempDir& folder) {
  for (const auto& [name, outputs] : all) check_package(name, outputs, folder);
}

}  // namespace

TEST_CASE("a network recorded in bfloat16 or under autocast is as exact as it is in C++") {
  const TempDir folder;
  record_all(in_bfloat16(), folder);
}

TEST_CASE("Python's ExportedProgram of a recorded network computes what the network computes",
          "[python]") {
  const TempDir folder;
  const auto outputs = record_all(in_float32(), folder);
  CHECK(compare_in_python(folder, "--onnx mlp,lstm --package mlp").empty());
  check_package("mlp", outputs.at("mlp"), folder);
}

TEST_CASE("each recorded network runs in ONNX Runtime and as a package", "[.][slow]") {
  const TempDir folder;
  const auto outputs = record_all(in_float32(), folder);
  CHECK(compare_in_python(folder, "--onnx all --package all").empty());
  check_packages(outputs, folder);
}

TEST_CASE(
    "each network recorded in bfloat16 runs in Python and as a package, unlike in ONNX Runtime",
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
}
