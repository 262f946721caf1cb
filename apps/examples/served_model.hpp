// Loads the models that server.cpp serves (weights, a recorded program, or a package) and runs them
// in the workers.
#pragma once

#include <ATen/Version.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>
#include <functional>
#include <map>
#include <memory>
#include <sconce/sconce.hpp>
#include <string>
#include <vector>

using torch::Tensor;

constexpr int64_t width = 64;  // number of values per row

// A function that maps rows to outputs and can be called by several threads concurrently.
using Run = std::function<Tensor(const Tensor&)>;

// Builds the network for --weights. Recorded programs and packages already contain their network.
inline torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(width, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10));
}

// One version of the served model. A Model is immutable and stays alive until every worker has
// switched to the next version.
struct Model {
  int64_t version = 1;
  torch::nn::Sequential net = nullptr;  // for --weights; each worker makes a copy
  Run run = {};                         // for a program or a package
};

inline torch::nn::Sequential load_weights(const std::string& file) {
  auto net = make_net();
  // Skips the example inputs and outputs that a recorded program stores along with the weights.
  const auto without_example = [](const std::string& name) {
    return name.starts_with("example.") ? std::string() : name;
  };
  sconce::nn::load_state_dict(*net, sconce::io::load_safetensors(file),
                              {.rename = without_example});
  return net;
}

inline Run load_program(const std::string& file) {
  const auto program = sconce::program::Program::load(file, {.device = torch::kCPU});
  return [program](const Tensor& x) { return program.run({x})[0]; };
}

inline Run load_package(const std::string& file, int workers) {
  using Package = torch::inductor::AOTIModelPackageLoader;
  auto about = Package::load_metadata_from_package(file, "model");
  // The machine code checks none of these conditions. serving_package.cpp explains them.
  for (const auto& [key, value] : {std::pair<std::string, std::string>("torch", TORCH_VERSION),
                                   {"AOTI_DEVICE_KEY", "cpu"},
                                   {"cpu", at::get_cpu_capability()},
                                   {"rows", "torch.float32 torch.Size([64])"}}) {
    TORCH_CHECK(about[key] == value, file, ": expected ", key, " '", value, "', got '", about[key],
                "'");
  }
  const auto package =
      std::make_shared<Package>(file, "model", /*run_single_threaded=*/false, workers);
  return [package](const Tensor& x) { return package->run({x})[0]; };
}

// Throws unless `run` accepts any number of rows. The check runs here so that a mismatch is
// reported before the first request arrives.
inline Run checked(const Run& run, int64_t max_batch) {
  const torch::NoGradGuard no_grad;
  for (const int64_t rows : {int64_t{1}, max_batch}) {
    const auto y = run(torch::zeros({rows, width}));
    TORCH_CHECK(y.dim() == 2 && y.size(0) == rows && y.scalar_type() == torch::kFloat,
                "expected float32 outputs (", rows, ", N), got ", sconce::repr(y.scalar_type()),
                " ", sconce::repr(y.sizes()));
  }
  return run;
}

// A worker's copy of the network. A captured forward pass has a fixed shape, so the worker captures
// one pass for each of several batch sizes. A batch is padded with zeros to the next size. New
// weights are copied into the same memory, so the captured passes stay valid. No other worker can
// see a partially copied network.
class CapturedNet {
 public:
  explicit CapturedNet(int64_t max_batch) {
    net_->eval();
    for (int64_t rows = 1; rows < 2 * max_batch; rows *= 2) add_pass(std::min(rows, max_batch));
  }

  Tensor operator()(const Model& model, const Tensor& x) {
    if (version_ != model.version) {
      sconce::nn::load_state_dict(*net_, sconce::nn::state_dict(*model.net));
      version_ = model.version;
    }
    auto& [rows, pass] = *passes_.lower_bound(x.size(0));
    const auto padded = torch::constant_pad_nd(x, {0, 0, 0, rows - x.size(0)});
    return pass({padded})[0].slice(0, 0, x.size(0)).clone();  // the next call overwrites the output
  }

 private:
  void add_pass(int64_t rows) {
    const auto forward = [this](const std::vector<Tensor>& x) {
      return std::vector<Tensor>{net_->forward(x[0])};
    };
    auto& pass = passes_.try_emplace(rows, sconce::cpu(), forward).first->second;
    while (!pass.is_captured()) pass({torch::zeros({rows, width})});  // before the first request
  }

  torch::nn::Sequential net_ = make_net();
  int64_t version_ = 0;
  std::map<int64_t, sconce::CapturedStep> passes_;
};
