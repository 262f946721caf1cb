// An epoch of shuffled batches, 256 of 60,000 images of 28 x 28, for feeding.py, which runs this in
// turn with Python. Prints a line "name seconds" each, the median of the epochs: by Batches, and by
// std::memcpy of the same rows into one buffer, with the order known before.

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "sconce/data/batches.hpp"
#include "sconce/stopwatch.hpp"

namespace {

constexpr int64_t rows = 60000;
constexpr int64_t batch_size = 256;

struct Epoch {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

// Copies row after row into a buffer of one batch, from its beginning for each batch.
std::function<void()> memcpy_rows(const torch::Tensor& tensor) {
  return [tensor, order = torch::randperm(rows),
          buffer = torch::empty_like(tensor.narrow(0, 0, batch_size))] {
    const auto row_bytes = tensor.nbytes() / rows;
    const auto* from = static_cast<const char*>(tensor.const_data_ptr());
    auto* to = static_cast<char*>(buffer.mutable_data_ptr());
    const auto* row = order.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(to + (i % batch_size) * row_bytes, from + row[i] * row_bytes, row_bytes);
    }
  };
}

void add_epochs(const std::string& name, const torch::Tensor& data, std::vector<Epoch>& epochs) {
  const auto target = torch::randint(10, {rows}, torch::kLong);
  sconce::data::Batches batches({data, target}, {.batch_size = batch_size, .shuffle = true});
  epochs.push_back({"sconce-" + name, [batches, epoch = 0]() mutable {
                      batches.set_epoch(++epoch);
                      for (auto batch : batches) TORCH_CHECK(batch.data.defined());
                    }});
  epochs.push_back({"memcpy-" + name, [data = memcpy_rows(data), target = memcpy_rows(target)] {
                      data();
                      target();
                    }});
}

}  // namespace

int main() {
  std::vector<Epoch> epochs;
  const auto images = torch::randint(256, {rows, 28, 28}, torch::kByte);
  add_epochs("uint8", images, epochs);
  add_epochs("float", images.to(torch::kFloat), epochs);
  epochs.push_back({"sconce-order", [] { torch::randperm(rows); }});
  for (int round = 0; round < 14; ++round) {
    for (auto& epoch : epochs) {
      const sconce::Stopwatch watch;
      epoch.run();
      if (round >= 3) epoch.seconds.push_back(watch.seconds());
    }
  }
  for (auto& [name, run, seconds] : epochs) {
    std::nth_element(seconds.begin(), seconds.begin() + 5, seconds.end());
    std::cout << name << " " << seconds[5] << "\n";
  }
}
