#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/nn/memory_format.hpp"
#include "sconce/nn/state_dict.hpp"

namespace sconce::test {

/// The contents of one line in reference/vision_models.txt, which describes a network.
struct NetworkLine {
  std::string what;
  std::vector<double> values;
};

inline std::vector<NetworkLine> lines_of_network(const std::string& network) {
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/vision_models.txt");
  std::vector<NetworkLine> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    std::string name, value;
    NetworkLine line;
    words >> name >> line.what;
    while (words >> value) line.values.push_back(std::stod(value));
    if (name == network) lines.push_back(std::move(line));
  }
  REQUIRE(!lines.empty());
  return lines;
}

// The tolerance allows for processors that perform additions in a different order.
inline void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double tolerance = 1e-4 * std::max(1.0, std::abs(expected[i]));
    CHECK_THAT(got[i], Catch::Matchers::WithinAbs(expected[i], tolerance));
  }
}

inline std::vector<double> values_of(const torch::Tensor& tensor) {
  const auto flat = tensor.detach().to(torch::kDouble).flatten().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

template <class Net>
std::vector<double> losses_of(Net& net, const torch::Tensor& x) {
  torch::optim::SGD sgd(net->parameters(), 0.001);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    const auto loss = torch::nn::functional::cross_entropy(net(x), torch::arange(4));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.template item<double>());
  }
  return losses;
}

/// Compares the state of a network created with seed 0 against the first lines of the torchvision
/// results.
inline void check_state(const torch::nn::Module& net, const std::vector<NetworkLine>& lines) {
  const auto state = nn::state_dict(net);
  REQUIRE(state.size() + 3 == lines.size());
  auto line = lines.begin();
  for (const auto& item : state) {
    const auto& [name, tensor] = item.pair();
    CAPTURE(name);
    REQUIRE(line->what == name);
    std::vector<double> expected(tensor.sizes().begin(), tensor.sizes().end());
    expected.push_back(tensor.to(torch::kDouble).sum().template item<double>());
    check_close(expected, (line++)->values);
  }
}

/// Compares a network created with seed 0 against the torchvision network: the state, the losses in
/// three steps on images of shape `(4, 3, size, size)`, and then the logits in both memory formats.
template <class Net>
void check_like_torchvision(const std::string& network, Net net, int64_t size) {
  const auto lines = lines_of_network(network);
  check_state(*net, lines);
  auto line = lines.end() - 3;
  net->to(torch::kDouble);  // steps in float32 amplify the rounding differences between processors
  const auto x = torch::randn({4, 3, size, size}).to(torch::kDouble);
  check_close(losses_of(net, x), (line++)->values);
  net->eval();
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    const torch::NoGradGuard no_grad;
    nn::to_memory_format(*net, format);
    check_close(values_of(net(x.contiguous(format))), (line++)->values);
  }
}

}  // namespace sconce::test
