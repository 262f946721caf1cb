// Keeping a log: reading the loss in every step makes the host wait; a log on the device does not.
// Covers: T1.log
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <iostream>

using sconce::repr;

// Counts the reads of single values by the host, which is what item() does.
int64_t host_reads = 0;

std::unique_ptr<at::ObserverContext> count_read(const at::RecordFunction& call) {
  host_reads += std::string_view(call.name()) == "aten::_local_scalar_dense";
  return nullptr;
}

// Makes 100 steps of a linear regression; log_loss(i, loss) keeps the loss of step i.
void train(torch::Device device, const std::function<void(int, const torch::Tensor&)>& log_loss) {
  torch::manual_seed(0);
  auto X = torch::randn({64, 3}, device);
  auto y = X.sum(1, /*keepdim=*/true);
  torch::nn::Linear net(3, 1);
  net->to(device);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (int i = 0; i < 100; ++i) {
    auto loss = torch::mse_loss(net->forward(X), y);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    log_loss(i, loss);
  }
}

int main() {
  const auto device = sconce::try_gpu();
  at::addGlobalCallback(at::RecordFunctionCallback(count_read));

  // note: a read does not stall all GPUs, as the text has it: the host waits for one stream.
  auto read = torch::zeros({100});
  train(device, [&](int i, const torch::Tensor& loss) { read[i] = loss.item<float>(); });
  std::cout << "host reads with item(): " << host_reads << '\n';

  // note: without detach() the log would keep the graph of every step alive.
  host_reads = 0;
  auto log = torch::zeros({100}, device);
  train(device, [&](int i, const torch::Tensor& loss) { log[i] = loss.detach(); });
  auto copied = log.cpu();
  std::cout << "host reads with a log on the device: " << host_reads << ", and one copy\n";
  std::cout << "equal logs: " << repr(copied.equal(read)) << '\n';
}
