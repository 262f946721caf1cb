#pragma once

// Records networks, and writes the expected results of exported networks.

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "program/networks.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "support/ask_python.hpp"

namespace sconce::test {

/// A recorded function and the network that it must match.
struct ExportedNetwork {
  Network network;                   // the network that is recorded
  program::Function reference = {};  // the network in float32, if it is recorded in bfloat16
};

/// The batch sizes for which exported networks are compared. Networks are recorded with a batch
/// size of 2 or more.
constexpr std::array<int64_t, 3> compared_rows = {1, 3, 17};

inline double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  const auto difference = (a.to(torch::kDouble) - b.to(torch::kDouble)).abs();
  return difference.numel() == 0 ? 0 : difference.max().item<double>();
}

/// The expected results of an exported network for inputs with a given number of rows.
struct ExpectedOutputs {
  ExpectedOutputs(const ExportedNetwork& exported, int64_t rows)
      : inputs(exported.network.example(rows).values()) {
    const torch::NoGradGuard no_grad;
    const auto own = exported.network.forward(inputs);
    outputs = exported.reference ? exported.reference(inputs) : own;
    for (size_t i = 0; i < own.size(); ++i) {
      const double scale = std::max(1.0, outputs[i].abs().max().item<double>());
      tolerances.push_back(exported.reference ? 2 * largest_difference(own[i], outputs[i])
                                              : 1e-5 * scale);
    }
  }

  /// Checks the results computed in C++.
  void check(const Tensors& computed) const {
    REQUIRE(computed.size() == outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      INFO("output " << i);
      REQUIRE(computed[i].sizes() == outputs[i].sizes());
      CHECK(largest_difference(computed[i], outputs[i]) <= tolerances[i]);
    }
  }

  /// Adds the tensors for a comparison in Python, with names such as "17.inputs.0".
  void add_to(StateDict& all) const {
    const auto rows = std::to_string(inputs[0].size(0));
    for (size_t i = 0; i < inputs.size(); ++i) {
      all.insert(rows + ".inputs." + std::to_string(i), inputs[i].cpu());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      all.insert(rows + ".outputs." + std::to_string(i), outputs[i].cpu());
    }
    all.insert(rows + ".tolerances", torch::tensor(tolerances, torch::kDouble));
  }

  Tensors inputs;
  Tensors outputs = {};
  std::vector<double> tolerances = {};
};

/// Records the network as NAME.program, compares `Program` with the network, and writes
/// NAME.expected.
inline std::vector<ExpectedOutputs> record_and_check(const ExportedNetwork& exported,
                                                     const std::filesystem::path& folder) {
  const auto& network = exported.network;
  INFO(network.name);
  const auto file = folder / (network.name + ".program");
  program::record(file, network.forward, network.example(2), network.options());
  const auto device = network.example(1)[0].value().device();
  const auto program = program::Program::load(file, {.device = device});
  std::vector<ExpectedOutputs> all;
  StateDict tensors;
  for (const int64_t rows : compared_rows) {
    INFO(rows << " rows");
    const auto& expected = all.emplace_back(exported, rows);
    expected.check(program.run(expected.inputs));
    expected.add_to(tensors);
  }
  io::save_torch(folder / (network.name + ".expected"), tensors);
  return all;
}

/// An export that Python rejected.
struct RefusedExport {
  std::string network;
  std::string kind;  // exported, onnx or package
  std::string reason;
};

/// Exports the programs in a folder with compare_exported.py and these options. The test fails if
/// one of the programs returns different results than the network. Returns the rejected exports.
inline std::vector<RefusedExport> compare_in_python(const TempDir& folder,
                                                    const std::string& options) {
  if (!std::filesystem::exists(SCONCE_PYTHON)) SKIP("needs LibTorch's Python");
  const auto ran =
      run_program(python_command() + "'" SCONCE_TESTS_DIR "/program/compare_exported.py' '" +
                  folder.path().string() + "' --path '" SCONCE_ONNX "' " + options);
  UNSCOPED_INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  std::vector<RefusedExport> refusals;
  std::ifstream file(folder.path() / "refused");
  for (RefusedExport refusal; std::getline(file, refusal.network, '\t') &&
                              std::getline(file, refusal.kind, '\t') &&
                              std::getline(file, refusal.reason);) {
    refusals.push_back(refusal);
  }
  return refusals;
}

}  // namespace sconce::test
