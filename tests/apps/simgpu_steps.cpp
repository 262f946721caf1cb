// Runs three training steps on a GPU, and then one more step in the range "counted":
//     test-simgpu-steps simple_nn|lenet|ddp [item]
// With `item`, the host reads the loss after the step. On simulated GPUs, the tests count the GPU
// work that this step launches.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <string>

#include "simgpu_print_loss.hpp"

namespace {

torch::nn::Sequential simple_nn() {
  return torch::nn::Sequential(torch::nn::Linear(64, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10));
}

torch::nn::Sequential lenet() {
  using namespace torch::nn;
  return Sequential(Unflatten(UnflattenOptions(1, {1, 8, 8})),
                    Conv2d(Conv2dOptions(1, 6, 5).padding(2)), Sigmoid(), AvgPool2d(2), Flatten(),
                    Linear(96, 120), Sigmoid(), Linear(120, 84), Sigmoid(), Linear(84, 10));
}

// A mixed-precision step with all operations that must not wait for the GPU.
class Step {
 public:
  explicit Step(torch::nn::Sequential net)
      : net_(std::move(net)), optimizer_(net_->parameters(), torch::optim::AdamWOptions(0.01)) {}

  template <class Model>
  torch::Tensor operator()(Model&& model, const torch::Tensor& X, const torch::Tensor& y) {
    optimizer_.zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCUDA);
      loss = torch::cross_entropy_loss(model(X), y);
    }
    scaler_.scale(loss).backward();
    scaler_.unscale_(optimizer_);
    sconce::nn::clip_grad_norm_(net_->parameters(), 1.0);
    scaler_.step(optimizer_);
    scaler_.update();
    return loss.detach();
  }

 private:
  torch::nn::Sequential net_;
  sconce::optim::AdamW optimizer_;
  sconce::amp::GradScaler scaler_;
};

template <class Model>
void run(torch::nn::Sequential net, Model&& model, torch::Device device, bool reads_loss) {
  Step step(std::move(net));
  const auto X = torch::rand({16, 64}, device);
  const auto y = torch::randint(10, {16}, torch::device(device).dtype(torch::kLong));
  for (int i = 0; i < 3; ++i) step(model, X, y);
  RECORD_USER_SCOPE("counted");
  const torch::Tensor loss = step(model, X, y);
  if (reads_loss) print_loss(loss);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool reads_loss = argc > 2;
  torch::manual_seed(0);
  if (name == "ddp") {
    const auto group = sconce::distributed::ProcessGroup::init();
    auto net = simple_nn();
    net->to(group.device());
    sconce::nn::DistributedDataParallel model(net, group);
    run(net, [&](const torch::Tensor& X) { return model(X); }, group.device(), reads_loss);
    return 0;
  }
  auto net = name == "lenet" ? lenet() : simple_nn();
  net->to(sconce::gpu());
  run(net, [&](const torch::Tensor& X) { return net->forward(X); }, sconce::gpu(), reads_loss);
  return 0;
}
