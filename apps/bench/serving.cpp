// Benchmarks single-row inference in evaluation mode without gradients, both with the network
// itself and with its recorded program.

#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "workload.hpp"

namespace bench {

namespace {

using sconce::program::Program;

torch::nn::Sequential served_mlp() {
  return torch::nn::Sequential(torch::nn::Linear(16, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10), torch::nn::LogSoftmax(1));
}

sconce::vision::models::ResNet served_resnet18() {
  return sconce::vision::models::resnet18();
}

template <class Model>
Program recorded(Model& net, const torch::Tensor& x) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("sconce-bench-" + std::to_string(getpid()) + ".safetensors");
  sconce::program::record(file, net, {{"x", x}}, {.dynamic_shapes = {{"x", 0}}});
  const auto program = Program::load(file);
  std::filesystem::remove(file);
  return program;
}

// Returns a network in evaluation mode and an input, both of which depend only on the seed.
template <auto make>
auto served(const std::vector<int64_t>& shape) {
  torch::manual_seed(0);
  auto net = make();
  net->eval();
  return std::pair(net, torch::randn(shape));
}

template <auto make>
Workload by_network(const std::vector<int64_t>& shape) {
  auto call = [served = served<make>(shape)]() mutable {
    const torch::NoGradGuard no_grad;
    return served.first->forward(served.second);
  };
  return {[call]() mutable { call(); }, {call().sum().template item<double>()}};
}

template <auto make>
Workload by_program(const std::vector<int64_t>& shape) {
  auto [net, input] = served<make>(shape);
  const auto call = [program = recorded(net, input), x = input] { return program.run({x})[0]; };
  return {[call] { call(); }, {call().sum().template item<double>()}};
}

}  // namespace

Workloads serving() {
  const std::vector<int64_t> row = {1, 16}, picture = {1, 3, 96, 96};
  return {{"mlp", [=](int64_t) { return by_program<served_mlp>(row); }},
          {"mlp_network", [=](int64_t) { return by_network<served_mlp>(row); }},
          {"resnet18", [=](int64_t) { return by_program<served_resnet18>(picture); }},
          {"resnet18_network", [=](int64_t) { return by_network<served_resnet18>(picture); }}};
}

}  // namespace bench
