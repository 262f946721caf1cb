// A shared library with the C functions that c_interface.h declares for training and prediction.
#include "c_interface.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/pimpl.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sconce/amp/autocast.hpp>
#include <sconce/data/batches.hpp>
#include <sconce/data/tensor_batches.hpp>
#include <sconce/io/safetensors.hpp>
#include <sconce/nn/state_dict.hpp>
#include <sconce/optim/adam.hpp>
#include <sconce/training/trainer.hpp>
#include <string>

namespace {

namespace F = torch::nn::functional;

// torch::nn::Linear would draw its weights from the default generator, which the rest of the
// process also uses.
struct DenseImpl : torch::nn::Module {
  DenseImpl(int64_t inputs, int64_t outputs, const at::Generator& generator) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    weight = register_parameter("weight",
                                torch::empty({outputs, inputs}).uniform_(-bound, bound, generator));
    bias = register_parameter("bias", torch::empty({outputs}).uniform_(-bound, bound, generator));
  }
  torch::Tensor forward(const torch::Tensor& x) { return F::linear(x, weight, bias); }
  torch::Tensor weight, bias;
};
TORCH_MODULE(Dense);

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t inputs, int64_t hidden, int64_t classes, uint64_t seed) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    fc1 = register_module("fc1", Dense(inputs, hidden, generator));
    fc2 = register_module("fc2", Dense(hidden, classes, generator));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(F::relu(fc1(x))); }
  Dense fc1 = nullptr, fc2 = nullptr;
};
TORCH_MODULE(Net);

// The object that a handle refers to.
class Classifier {
 public:
  Classifier(int64_t inputs, int64_t hidden, int64_t classes, uint64_t seed)
      : inputs_(inputs), classes_(classes), seed_(seed), net_(inputs, hidden, classes, seed) {
    restart_optimizer();
  }

  void train(const float* x, int64_t x_count, const int64_t* y, int64_t y_count, int64_t epochs);
  void predict(const float* x, int64_t x_count, float* out, int64_t out_count);

  void save(const char* path) const {
    sconce::io::save_safetensors(path, sconce::nn::state_dict(*net_), {{"format", "pt"}});
  }

  void load(const char* path) {
    sconce::nn::load_state_dict(*net_, sconce::io::load_safetensors(path));
    restart_optimizer();
  }

  std::mutex mutex;  // locked for the entire duration of a call

 private:
  void restart_optimizer() {
    optimizer_ = std::make_unique<sconce::optim::AdamW>(net_->parameters(),
                                                        torch::optim::AdamWOptions(1e-2));
    epochs_ = 0;
  }

  // Returns the number of rows in x.
  int64_t count_rows(const char* function, const float* x, int64_t x_count) const {
    TORCH_CHECK(x != nullptr, function, ": expected x, got a null pointer");
    TORCH_CHECK(x_count > 0 && x_count % inputs_ == 0, function,
                ": expected x_count to be a positive multiple of ", inputs_, ", got ", x_count);
    return x_count / inputs_;
  }

  // Returns a tensor of shape `(rows, inputs)` that shares the caller's memory. Check all counts
  // before calling this function, because it reads x.
  torch::Tensor view_rows(const char* function, const float* x, int64_t rows) const {
    const auto view = torch::from_blob(const_cast<float*>(x), {rows, inputs_}, torch::kFloat);
    TORCH_CHECK(view.isfinite().all().item<bool>(), function, ": expected finite values in x");
    return view;
  }

  int64_t inputs_, classes_;
  uint64_t seed_;
  Net net_;
  std::unique_ptr<sconce::optim::AdamW> optimizer_ = {};
  uint64_t epochs_ = 0;  // trained by this optimizer
};

void Classifier::train(const float* x, int64_t x_count, const int64_t* y, int64_t y_count,
                       int64_t epochs) {
  const auto rows = count_rows("sc_train", x, x_count);
  TORCH_CHECK(y != nullptr, "sc_train: expected y, got a null pointer");
  TORCH_CHECK(y_count == rows, "sc_train: expected y_count to be ", rows,
              ", one for each row of x, got ", y_count);
  TORCH_CHECK(epochs > 0 && epochs <= 1'000'000, "sc_train: expected 1 to 1000000 epochs, got ",
              epochs);
  const auto data = view_rows("sc_train", x, rows);
  const auto labels = torch::from_blob(const_cast<int64_t*>(y), {rows}, torch::kLong);
  const auto [least, greatest] = labels.aminmax();
  TORCH_CHECK(least.item<int64_t>() >= 0 && greatest.item<int64_t>() < classes_,
              "sc_train: expected classes from 0 to ", classes_ - 1, " in y, got ",
              least.item<int64_t>(), " to ", greatest.item<int64_t>());

  // Epoch n of a handle always uses the same order, no matter how the epochs are divided among
  // calls.
  const sconce::data::Batches batches({data, labels},
                                      {.batch_size = 32, .shuffle = true, .seed = seed_ + epochs_});
  sconce::Trainer trainer({.max_epochs = static_cast<int>(epochs), .num_gpus = 0});
  trainer.fit(net_, *optimizer_, batches);
  epochs_ += static_cast<uint64_t>(epochs);
}

void Classifier::predict(const float* x, int64_t x_count, float* out, int64_t out_count) {
  const auto rows = count_rows("sc_predict", x, x_count);
  TORCH_CHECK(out != nullptr, "sc_predict: expected out, got a null pointer");
  TORCH_CHECK(out_count % classes_ == 0 && out_count / classes_ == rows,
              "sc_predict: expected out_count to be ", rows, " * ", classes_, ", got ", out_count);
  const auto data = view_rows("sc_predict", x, rows);
  sconce::Trainer trainer({.num_gpus = 0});
  const sconce::data::TensorBatches batches(data, {.batch_size = 1024});
  trainer.predict(net_, batches, [&](const torch::Tensor& logits) {
    const auto probabilities = logits.softmax(1).contiguous();
    const auto count = static_cast<size_t>(probabilities.numel());
    std::memcpy(out, probabilities.const_data_ptr<float>(), count * sizeof(float));
    out += count;
  });
}

// Maps handles to classifiers. A handle is looked up rather than dereferenced, so an invalid handle
// results in an error. Each call shares ownership of its classifier, so calling sc_free in another
// thread is safe.
class Table {
 public:
  uint64_t add(std::shared_ptr<Classifier> entry) {
    const std::lock_guard lock(mutex_);
    entries_.emplace(last_ + 1, std::move(entry));
    return ++last_;
  }

  std::shared_ptr<Classifier> find(const char* function, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return position(function, handle)->second;
  }

  // Returns the removed entry so that it is destroyed after the table has been unlocked.
  std::shared_ptr<Classifier> remove(const char* function, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return std::move(entries_.extract(position(function, handle)).mapped());
  }

 private:
  using Entries = std::map<uint64_t, std::shared_ptr<Classifier>>;

  Entries::iterator position(const char* function, uint64_t handle) {
    const auto found = entries_.find(handle);
    TORCH_CHECK(found != entries_.end(), function,
                ": expected a handle returned by sc_create, got ", handle,
                handle != 0 && handle <= last_ ? ", which was freed" : "");
    return found;
  }

  std::mutex mutex_;
  Entries entries_;
  uint64_t last_ = 0;
};

// The table is never destroyed, because other threads may still be in a call when main returns. The
// operating system frees the table's memory when the process exits.
Table& table() {
  static auto* const the_table = new Table;
  return *the_table;
}

std::atomic<pid_t> process = 0;  // the first process that called sc_create

// After a fork, LibTorch's threads do not exist in the child, but their locks may still be held.
void check_process() {
  const pid_t first = process, current = getpid();
  TORCH_CHECK(first == 0 || first == current, "c_interface: expected a call from process ", first,
              " (the first process to call sc_create), got a call from process ", current,
              ", which was forked from the first process; call sc_create only after the fork");
}

thread_local char error_text[4096] = "";  // needs no destructor at thread exit

void keep_error(const char* text) noexcept {
  std::snprintf(error_text, sizeof error_text, "%s", *text != 0 ? text : "unknown error");
}

// Runs `body`, and returns 0 on success or 1 if `body` throws, so that no exception propagates into
// C code.
template <class Body>
int guarded(const Body& body) noexcept {
  error_text[0] = 0;
  try {
    check_process();
    // Modes that the calling thread has enabled, such as Python's no_grad, must not affect this
    // code.
    const c10::InferenceMode with_gradients(false);
    const sconce::amp::AutocastGuard without_autocast(torch::kCPU, {.enabled = false});
    body();
    return 0;
  } catch (const c10::Error& error) {
    keep_error(error.what_without_backtrace());
  } catch (const std::exception& error) {
    keep_error(error.what());
  } catch (...) {
    keep_error("an exception of unknown type");
  }
  return 1;
}

// Runs `body` with the classifier that a handle refers to. No other call can use the classifier
// until `body` returns.
template <class Body>
int with_classifier(const char* function, uint64_t handle, const Body& body) noexcept {
  return guarded([&] {
    const auto classifier = table().find(function, handle);
    const std::lock_guard lock(classifier->mutex);
    body(*classifier);
  });
}

void check_path(const char* function, const char* path) {
  TORCH_CHECK(path != nullptr && *path != 0, function, ": expected a path, got ",
              path == nullptr ? "a null pointer" : "an empty string");
}

void check_size(const char* name, int64_t size, int64_t least) {
  constexpr int64_t most = 1'000'000;
  TORCH_CHECK(size >= least && size <= most, "sc_create: expected ", name, " from ", least, " to ",
              most, ", got ", size);
}

void check_sizes(int64_t inputs, int64_t hidden, int64_t classes) {
  check_size("inputs", inputs, 1);
  check_size("hidden", hidden, 1);
  check_size("classes", classes, 2);
  constexpr int64_t most = 100'000'000;
  const int64_t weights = hidden * (inputs + classes);
  TORCH_CHECK(weights <= most, "sc_create: expected at most ", most, " weights, got ", weights);
}

}  // namespace

uint64_t sc_create(int64_t inputs, int64_t hidden, int64_t classes, uint64_t seed) {
  uint64_t handle = 0;
  guarded([&] {
    check_sizes(inputs, hidden, classes);
    pid_t none = 0;
    process.compare_exchange_strong(none, getpid());
    handle = table().add(std::make_shared<Classifier>(inputs, hidden, classes, seed));
  });
  return handle;
}

int sc_train(uint64_t handle, const float* x, int64_t x_count, const int64_t* y, int64_t y_count,
             int64_t epochs) {
  return with_classifier("sc_train", handle, [&](Classifier& classifier) {
    classifier.train(x, x_count, y, y_count, epochs);
  });
}

int sc_predict(uint64_t handle, const float* x, int64_t x_count, float* out, int64_t out_count) {
  return with_classifier("sc_predict", handle, [&](Classifier& classifier) {
    classifier.predict(x, x_count, out, out_count);
  });
}

int sc_save(uint64_t handle, const char* path) {
  return with_classifier("sc_save", handle, [&](const Classifier& classifier) {
    check_path("sc_save", path);
    classifier.save(path);
  });
}

int sc_load(uint64_t handle, const char* path) {
  return with_classifier("sc_load", handle, [&](Classifier& classifier) {
    check_path("sc_load", path);
    classifier.load(path);
  });
}

int sc_free(uint64_t handle) {
  return guarded([&] { table().remove("sc_free", handle); });
}

const char* sc_error(void) {
  return error_text;
}
