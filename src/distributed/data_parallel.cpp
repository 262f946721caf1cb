#include "sconce/distributed/data_parallel.hpp"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "distributed/replica.hpp"
#include "distributed/tensor_members.hpp"
#include "distributed/worker_thread.hpp"
#include "resolve_device.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/lazy.hpp"
#include "to_device.hpp"

namespace sconce::nn {

namespace {

std::vector<torch::Device> resolved(std::vector<torch::Device> devices) {
  if (devices.empty() && num_gpus() > 0) devices = try_all_gpus();
  for (auto& device : devices) device = resolve_device(device, data_parallel_name);
  return devices;
}

// The thread-local state that another thread needs to produce the same results as the thread that
// constructed this object.
class CallerState {
 public:
  CallerState() : in_autocast_(at::autocast::increment_nesting() > 1) {
    at::autocast::decrement_nesting();
  }

  // Calls `f`, which must not throw.
  template <class F>
  void run(const F& f) const {
    const at::ThreadLocalStateGuard guard(state_);
    at::init_num_threads();
    at::autocast::set_autocast_cache_enabled(cache_enabled_);
    // Otherwise, an autocast scope in the module would be the outermost scope in this thread, and
    // leaving it would discard the caller's cached casts.
    if (in_autocast_) at::autocast::increment_nesting();
    f();
    if (in_autocast_) at::autocast::decrement_nesting();
  }

 private:
  at::ThreadLocalState state_;
  bool cache_enabled_ = at::autocast::is_autocast_cache_enabled();
  bool in_autocast_;
};

[[noreturn]] void rethrow(const std::exception_ptr& error, size_t index, torch::Device device) {
  const std::string where =
      c10::str(data_parallel_name, ": replica ", index, " on device ", device, ": ");
  const c10::SourceLocation here = {__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError& e) {
    std::throw_with_nested(c10::OutOfMemoryError(here, where + e.what_without_backtrace()));
  } catch (const c10::Error& e) {
    std::throw_with_nested(c10::Error(here, where + e.what_without_backtrace()));
  } catch (const std::exception& e) {
    std::throw_with_nested(std::runtime_error(where + e.what()));
  } catch (...) {
    std::throw_with_nested(
        std::runtime_error(where + "an exception not derived from std::exception"));
  }
}

}  // namespace

DataParallelBase::DataParallelBase(std::shared_ptr<torch::nn::Module> module,
                                   const DataParallelOptions& options)
    : module_(std::move(module)),
      device_ids_(resolved(options.device_ids)),
      output_device_(options.output_device
                         ? resolve_device(*options.output_device, data_parallel_name)
                     : device_ids_.empty() ? cpu()
                                           : device_ids_.front()),
      dim_(options.dim) {
  TORCH_CHECK(module_ != nullptr, data_parallel_name, ": expected a module, got null");
  if (device_ids_.size() == 1) module_->to(device_ids_.front());
  if (device_ids_.size() > 1) make_replicas();
}

DataParallelBase::~DataParallelBase() = default;

void DataParallelBase::make_replicas() {
  layers_.clear();
  members_.clear();
  replicas_.clear();
  replicas_ = Replica::make(module_, device_ids_);
  if (has_uninitialized_params(*module_)) return;
  layers_ = module_->modules();
  for (const auto& layer : layers_) {
    for (auto* member : tensor_members(*layer)) members_.push_back(member);
  }
  tensors_ = current_tensors();
}

DataParallelBase::Tensors DataParallelBase::current_tensors() const {
  // This function runs in every forward pass. Querying all tensors in the module at once would also
  // construct their names.
  Tensors tensors;
  for (const auto& layer : layers_) {
    for (auto& tensor : tensors_of(*layer, /*recurse=*/false)) tensors.push_back(std::move(tensor));
  }
  for (const auto* member : members_) tensors.push_back(*member);
  return tensors;
}

bool DataParallelBase::is_changed() const {
  if (module_->modules() != layers_) return true;
  const auto now = current_tensors();
  return !std::equal(now.begin(), now.end(), tensors_.begin(), tensors_.end(),
                     [](const auto& a, const auto& b) { return a.is_same(b); });
}

void DataParallelBase::replicate(size_t count) {
  if (is_changed()) {
    check_initialized(*module_, data_parallel_name);
    make_replicas();
  }
  for (const auto& pair : replicas_.front().tensors) {
    TORCH_CHECK(pair.original.device() == device_ids_.front(), data_parallel_name,
                ": expected the module's parameters and buffers on the first device (",
                device_ids_.front(), "), got a tensor on ", pair.original.device());
  }
  const bool with_grad = at::GradMode::is_enabled();
  const c10::InferenceMode trainable(false);  // also enables grad mode, so it comes first
  const at::AutoGradMode grad_mode(with_grad);
  for (size_t i = 1; i < count; ++i) replicas_[i - 1].update(with_grad);
  while (threads_.size() + 1 < count) threads_.push_back(std::make_unique<WorkerThread>());
}

torch::nn::Module& DataParallelBase::replica(size_t index) const {
  return index == 0 ? *module_ : *replicas_[index - 1].module;
}

std::vector<DataParallelBase::Tensors> DataParallelBase::scatter(const Tensors& inputs) const {
  const size_t devices = device_ids_.size();
  std::vector<Tensors> chunks;  // one entry per input
  std::optional<size_t> count;
  for (const auto& input : inputs) {
    auto& input_chunks = chunks.emplace_back();
    if (!input.defined()) continue;
    TORCH_CHECK(devices == 1 || input.dim() > 0, data_parallel_name,
                ": expected tensors with at least one dimension, got a 0-dim tensor");
    input_chunks = devices == 1 ? Tensors{input} : input.chunk(static_cast<int64_t>(devices), dim_);
    if (!count) count = input_chunks.size();
    TORCH_CHECK(count == input_chunks.size(), data_parallel_name,
                ": expected every tensor to have ", *count, " chunks along dimension ", dim_,
                " on ", devices, " devices (like the first tensor), got a tensor of shape ",
                input.sizes(), " with ", input_chunks.size(), " chunks");
  }
  std::vector<Tensors> replicas(count.value_or(devices), Tensors(inputs.size()));
  for (size_t i = 0; i < replicas.size(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].defined()) replicas[i][k] = to_device(chunks[k][i], device_ids_[i]);
    }
  }
  return replicas;
}

void DataParallelBase::run(size_t count, const std::function<void(size_t)>& forward) const {
  const CallerState caller;
  std::vector<c10::Stream> streams;
  for (const auto device : device_ids_) {
    streams.push_back(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  std::vector<std::exception_ptr> errors(count);
  const auto run_one = [&](size_t i) {
    try {
      const c10::StreamGuard on_device(streams[i]);
      forward(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  // Nothing may throw between the start of a thread and its wait, because the task refers to local
  // variables.
  const std::function<void(size_t)> task = [&](size_t i) { caller.run([&] { run_one(i); }); };
  for (size_t i = 1; i < count; ++i) threads_[i - 1]->start(task, i);
  run_one(0);
  for (size_t i = 1; i < count; ++i) threads_[i - 1]->wait();
  for (size_t i = 0; i < count; ++i) {
    if (errors[i]) rethrow(errors[i], i, device_ids_[i]);
  }
}

DataParallelBase::Tensors DataParallelBase::gather(const std::vector<Tensors>& outputs) const {
  Tensors joined(outputs.front().size());
  for (size_t k = 0; k < joined.size(); ++k) {
    if (!outputs.front()[k].defined()) continue;
    Tensors parts;
    bool numbers = dim_ == 0;
    for (const auto& replica_outputs : outputs) {
      parts.push_back(to_device(replica_outputs[k], output_device_));
      numbers = numbers && parts.back().dim() == 0;
    }
    if (numbers) {
      TORCH_WARN_ONCE(data_parallel_name,
                      ": the replicas returned 0-dim tensors, which are joined into a vector with "
                      "one entry per replica");
      for (auto& part : parts) part = part.view(1);
    }
    joined[k] = at::cat(parts, dim_);
  }
  return joined;
}

void DataParallelBase::refuse_outputs(size_t index) {
  TORCH_CHECK(false, data_parallel_name,
              ": expected outputs with the same structure (lengths, keys, and undefined tensors) "
              "from every replica, got different structures from replicas 0 and ",
              index);
}

}  // namespace sconce::nn
