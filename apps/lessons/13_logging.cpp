// Keeping a log: reading the loss in every step makes the host wait; a log on the device does not.
// Covers: T1.log
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <atomic>
#include <iostream>

using sconce::repr;

std::string_view counted;
std::atomic<int> calls;

std::unique_ptr<at::ObserverContext> count_call(const at::RecordFunction& call) {
  if (call.name() == counted) ++calls;
  return nullptr;
}

// Counts how often the work calls the operator, on the CPU too.
int calls_of(std::string_view name, const std::function<void()>& work) {
  counted = name;
  calls = 0;
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(count_call));
  work();
  at::removeCallback(handle);
  return calls;
}

// Makes 100 steps of a linear regression; log_loss(i, loss) keeps the loss of step i.
void train(torch::Device device,
           const std::function<void(int, const torch::Tensor&)>& log_loss) {
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
  const char* read_of_one = "aten::_local_scalar_dense";  // what item() calls
  const char* copy_elsewhere =
      "aten::_to_copy";  // what cpu() calls, where it has to copy

  // T1.log
  // note: a read does not stall all GPUs, as the text has it: the host waits for one stream.
  auto read = torch::zeros({100});
  const auto read_losses = [&] {
    train(device,
          [&](int i, const torch::Tensor& loss) { read[i] = loss.item<float>(); });
  };
  std::cout << "host reads with item(): " << calls_of(read_of_one, read_losses) << '\n';

  // note: without detach() the log would keep the graph of every step alive.
  auto log = torch::zeros({100}, device);
  const auto keep_losses = [&] {
    train(device, [&](int i, const torch::Tensor& loss) { log[i] = loss.detach(); });
  };
  std::cout << "host reads with a log on the device: "
            << calls_of(read_of_one, keep_losses) << '\n';
  torch::Tensor copied;
  const int copies = calls_of(copy_elsewhere, [&] { copied = log.cpu(); });
  std::cout << "copies of the log, from " << log.device() << " to " << copied.device()
            << ": " << copies << '\n';

  std::cout << "Beyond the cells:\n";
  std::cout << "equal logs: " << repr(copied.equal(read))
            << ", the last loss below the first: "
            << repr((copied[99] < copied[0]).item<bool>()) << '\n';
  auto with_graph = torch::zeros({100}, device);
  train(device, [&](int i, const torch::Tensor& loss) { with_graph[i] = loss; });
  std::cout << "a log keeps the graphs: " << repr(log.requires_grad())
            << ", without detach() " << repr(with_graph.requires_grad()) << '\n';
}
