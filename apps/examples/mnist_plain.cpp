// Trains a LeNet on handwritten digits with LibTorch alone. This program performs the same
// computation as mnist.cpp and prints the same numbers on the CPU.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numbers>
#include <utility>

// Reads an IDX file of bytes. The header contains two zero bytes, the type, the number of
// dimensions, and each size as 4 big-endian bytes.
torch::Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes.at(i)); };
  TORCH_CHECK(bytes.size() > 4 && at(0) == 0 && at(1) == 0 && at(2) == 8 &&
                  bytes.size() >= 4 + 4 * size_t{at(3)},
              path, ": expected an IDX file of unsigned bytes");
  std::vector<int64_t> sizes;
  for (size_t i = 4; i < 4 + 4 * size_t{at(3)}; i += 4) {
    sizes.push_back(at(i) << 24 | at(i + 1) << 16 | at(i + 2) << 8 | at(i + 3));
  }
  const size_t header = 4 + 4 * sizes.size();
  auto tensor = torch::empty(sizes, torch::kByte);
  TORCH_CHECK(bytes.size() == header + tensor.numel(), path, ": expected ", tensor.numel(),
              " bytes after the header, got ", bytes.size() - header);
  std::copy(bytes.begin() + header, bytes.end(), tensor.data_ptr<uint8_t>());
  return tensor;
}

std::pair<torch::Tensor, torch::Tensor> read(const std::string& part, torch::Device device) {
  auto images = read_idx(part + "-images-idx3-ubyte").unsqueeze(1).to(device, torch::kFloat);
  auto labels = read_idx(part + "-labels-idx1-ubyte").to(device, torch::kLong);
  return {images / images.max(), labels};
}

// Enables autocast to bfloat16 until the end of the scope.
class Autocast {
 public:
  explicit Autocast(torch::DeviceType type) : type_(type) {
    at::autocast::set_autocast_dtype(type_, torch::kBFloat16);
    at::autocast::set_autocast_enabled(type_, true);
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(type_, false);
  }

 private:
  torch::DeviceType type_;
};

int main(int argc, char** argv) try {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("usage: mnist_plain [FOLDER]\n", stderr);
    return 2;
  }
  const std::string folder = argc > 1 ? argv[1] : SCONCE_DIGITS_DIR;  // contains MNIST's four files
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  const auto [images, labels] = read(folder + "/train", device);
  const auto [test_images, test_labels] = read(folder + "/t10k", device);

  torch::manual_seed(0);
  namespace nn = torch::nn;
  const int64_t features = 16 * (images.size(2) / 4) * (images.size(3) / 4);
  nn::Sequential net;  // push_back, because the evaluation order of arguments is unspecified
  net->push_back(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)));
  net->push_back(nn::ReLU());
  net->push_back(nn::MaxPool2d(2));  // (N, 6, H/2, W/2)
  net->push_back(nn::Conv2d(nn::Conv2dOptions(6, 16, 5).padding(2)));
  net->push_back(nn::ReLU());
  net->push_back(nn::MaxPool2d(2));  // (N, 16, H/4, W/4)
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(features, 120));
  net->push_back(nn::ReLU());
  net->push_back(nn::Linear(120, 84));
  net->push_back(nn::ReLU());
  net->push_back(nn::Linear(84, 10));
  net->to(device);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(/*lr=*/0.1).momentum(0.9));

  const int epochs = 10;
  const auto seen = static_cast<double>(images.size(0));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto& group : sgd.param_groups()) {
      group.options().set_lr(0.05 * (1 + std::cos(std::numbers::pi * epoch / epochs)));
    }
    net->train();
    auto loss_sum = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kDouble));
    auto right = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kLong));
    auto generator = at::make_generator<at::CPUGeneratorImpl>(epoch);
    const auto order = torch::randperm(images.size(0), generator, torch::kLong).to(device);
    for (const auto& rows : order.split(32)) {
      const auto target = labels.index_select(0, rows);
      torch::Tensor output, loss;
      {
        const Autocast autocast(device.type());
        output = net->forward(images.index_select(0, rows));
        loss = nn::functional::cross_entropy(output, target);
      }
      sgd.zero_grad();
      loss.backward();
      sgd.step();
      loss_sum += loss.detach() * rows.size(0);
      right += output.argmax(1).eq(target).sum();
    }

    net->eval();
    auto test_right = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kLong));
    const torch::NoGradGuard no_grad;
    for (int64_t begin = 0; begin < test_images.size(0); begin += 1000) {
      const Autocast autocast(device.type());
      const auto output = net->forward(test_images.slice(0, begin, begin + 1000));
      test_right += output.argmax(1).eq(test_labels.slice(0, begin, begin + 1000)).sum();
    }
    std::printf("epoch %d: loss %.4f, train acc %.4f, test acc %.4f\n", epoch + 1,
                loss_sum.item<double>() / seen, right.item<double>() / seen,
                test_right.item<double>() / static_cast<double>(test_images.size(0)));
  }
} catch (const c10::Error& error) {
  std::fprintf(stderr, "mnist_plain: %s\n", error.what_without_backtrace());
  return 1;
}
