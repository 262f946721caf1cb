#include "sconce/distributed/data_parallel.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeindex>
#include <typeinfo>

#include "distributed/tensor_members.hpp"
#include "nn/keep_generator.hpp"
#include "resolve_device.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/lazy.hpp"
#include "to_device.hpp"

namespace sconce::nn {

// A clone of the module, with pairs that map layers and tensors of the module to those of the
// clone.
struct DataParallelBase::Replica {
  template <class T>
  struct Pair {
    T original;
    T copy;
  };

  torch::Device device;
  std::shared_ptr<torch::nn::Module> module = {};
  std::vector<Pair<std::shared_ptr<torch::nn::Module>>> layers = {};  // parents before children
  std::vector<Pair<torch::Tensor>> tensors = {};

  void pair_up(const std::shared_ptr<torch::nn::Module>& original,
               const std::shared_ptr<torch::nn::Module>& copy);
  void pair_up_tensors(torch::nn::Module& layer,
                       const torch::OrderedDict<std::string, torch::Tensor>& originals,
                       const torch::OrderedDict<std::string, torch::Tensor>& copies);
  torch::Tensor copy_of(const torch::Tensor& original);
  void set_members();
  void check_members() const;
  void update(bool with_grad) const;
};

namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

constexpr auto who = "sconce::nn::DataParallel";

std::vector<torch::Device> resolved(std::vector<torch::Device> devices) {
  if (devices.empty() && num_gpus() > 0) devices = try_all_gpus();
  for (auto& device : devices) device = resolve_device(device, who);
  return devices;
}

std::string class_of(const torch::nn::Module& module) {
  return c10::demangle(typeid(module).name());
}

template <class... Classes>
bool is_one_of(const torch::nn::Module& module) {
  return ((dynamic_cast<const Classes*>(&module) != nullptr) || ...);
}

[[noreturn]] void refuse_module(const torch::nn::Module& module, const std::string& reason) {
  const std::string name = class_of(module);
  TORCH_CHECK((!is_one_of<torch::nn::ParameterListImpl, torch::nn::ParameterDictImpl>(module)), who,
              ": expected modules that can be cloned, got ", name, ", of which LibTorch's clone ",
              "loses the parameters: give them to register_parameter in the reset() of the module ",
              "around it");
  TORCH_CHECK(false, who, ": expected modules that can be cloned, so ", name,
              " derived from torch::nn::Cloneable<", name, ">, got: ", reason);
}

ModulePtr clone_of(const torch::nn::Module& module, std::optional<torch::Device> device = {}) {
  try {
    return module.clone(device);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    refuse_module(module, error.what_without_backtrace());
  }
}

// Returns the parameters and buffers of a module, or of one layer alone.
std::vector<torch::Tensor> tensors_of(const torch::nn::Module& module, bool recurse = true) {
  auto tensors = module.parameters(recurse);
  for (const auto& buffer : module.buffers(recurse)) tensors.push_back(buffer);
  return tensors;
}

// The children of a clone are made by its `reset`. Children of a class without `clone` then keep
// their initial values, and LibTorch does not report it. So each class is tried.
void check_cloneable(const torch::nn::Module& module, std::set<std::type_index>& tried) {
  for (const auto& child : module.children()) {
    const torch::nn::Module& layer = *child;
    check_cloneable(layer, tried);
    if (tried.insert(typeid(layer)).second) clone_of(layer);
  }
}

// The usual counts: each tensor that the layer registered is held by one member, other tensors by
// none.
std::vector<size_t> usual_counts(const torch::nn::Module& layer,
                                 const std::vector<torch::Tensor>& tensors) {
  const auto own = tensors_of(layer, /*recurse=*/false);
  std::vector<size_t> counts;
  for (const auto& tensor : tensors) {
    counts.push_back(std::any_of(own.begin(), own.end(),
                                 [&](const auto& other) { return other.is_same(tensor); }));
  }
  return counts;
}

// Restores the data of the original's tensors. LibTorch's clone changes it if `reset` registers a
// tensor that was given as an option, as in `Embedding::from_pretrained`.
class KeepData {
 public:
  explicit KeepData(const torch::nn::Module& module) : tensors_(tensors_of(module)) {
    for (const auto& tensor : tensors_) values_.push_back(tensor.detach());
  }
  ~KeepData() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].has_storage() || tensors_[i].is_alias_of(values_[i])) continue;
      tensors_[i].set_data(values_[i]);
    }
  }
  KeepData(const KeepData&) = delete;
  KeepData& operator=(const KeepData&) = delete;

 private:
  std::vector<torch::Tensor> tensors_;
  std::vector<torch::Tensor> values_;
};

// The state that a new thread needs to compute like the thread that made this object.
class CallerState {
 public:
  CallerState() : in_autocast_(at::autocast::increment_nesting() > 1) {
    at::autocast::decrement_nesting();
  }

  template <class F>
  void run(const F& f) const {
    const at::ThreadLocalStateGuard guard(state_);
    at::init_num_threads();
    at::autocast::set_autocast_cache_enabled(cache_enabled_);
    // Otherwise an autocast scope in the module would be the outermost here and drop the caller's
    // casts.
    if (in_autocast_) at::autocast::increment_nesting();
    f();
  }

 private:
  at::ThreadLocalState state_;
  bool cache_enabled_ = at::autocast::is_autocast_cache_enabled();
  bool in_autocast_;
};

[[noreturn]] void rethrow(const std::exception_ptr& error, size_t index, torch::Device device) {
  const std::string where = c10::str(who, ": replica ", index, " on device ", device, ": ");
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
    std::throw_with_nested(std::runtime_error(where + "an exception that is no std::exception"));
  }
}

}  // namespace

void DataParallelBase::Replica::pair_up(const ModulePtr& original, const ModulePtr& copy) {
  if (copy == nullptr || class_of(*copy) != class_of(*original)) {
    refuse_module(*original, "a clone of " + (copy ? class_of(*copy) : "nothing"));
  }
  layers.push_back({original, copy});
  pair_up_tensors(*original, original->named_parameters(/*recurse=*/false),
                  copy->named_parameters(/*recurse=*/false));
  pair_up_tensors(*original, original->named_buffers(/*recurse=*/false),
                  copy->named_buffers(/*recurse=*/false));
  const auto children = copy->named_children();
  for (const auto& child : original->named_children()) {
    const auto* found = children.find(child.key());
    pair_up(child.value(), found == nullptr ? nullptr : *found);
  }
}

void DataParallelBase::Replica::pair_up_tensors(
    torch::nn::Module& layer, const torch::OrderedDict<std::string, torch::Tensor>& originals,
    const torch::OrderedDict<std::string, torch::Tensor>& copies) {
  for (const auto& item : originals) {
    if (!item.value().defined()) continue;
    torch::Tensor copy = copies[item.key()];
    if (copy.is_same(item.value())) {
      // The weight of an Embedding or of a loss, given as an option. The members are set later.
      TORCH_CHECK(!tensor_members(layer).empty(), who, ": expected a reset() of ", class_of(layer),
                  " that registers a new tensor for '", item.key(), "', got one that registers ",
                  "the tensor of the original in a clone");
      copy = to_device(copy.detach(), device, /*copy=*/true);
    }
    // Its gradient comes only through an edge to the original, so a forward can remove it.
    copy.set_requires_grad(false);
    tensors.push_back({item.value(), copy});
  }
}

torch::Tensor DataParallelBase::Replica::copy_of(const torch::Tensor& original) {
  if (!original.defined()) return {};
  for (const auto& pair : tensors) {
    if (pair.original.is_same(original)) return pair.copy;
  }
  return tensors
      .emplace_back(
          Pair<torch::Tensor>{original, to_device(original.detach(), device, /*copy=*/true)})
      .copy;
}

// A layer may compute with other tensors than it registered: a user may have set a member to a
// tensor of another layer, or to one that is not registered.
void DataParallelBase::Replica::set_members() {
  for (const auto& [original, copy] : layers) {
    const auto from = tensor_members(*original);
    const auto to = tensor_members(*copy);
    for (size_t i = 0; i < from.size(); ++i) *to[i] = copy_of(*from[i]);
  }
}

// Members of other classes cannot be set here, so they must be as `reset` sets them.
void DataParallelBase::Replica::check_members() const {
  namespace nn = torch::nn;
  std::vector<torch::Tensor> originals, copies;
  for (const auto& pair : tensors) {
    originals.push_back(pair.original);
    copies.push_back(pair.copy);
  }
  for (const auto& [original, copy] : layers) {
    if (is_one_of<nn::SequentialImpl, nn::ModuleListImpl, nn::ModuleDictImpl>(*original)) continue;
    if (!tensor_members(*original).empty()) continue;
    const auto counts = count_members(*original, originals);
    TORCH_CHECK(
        counts == usual_counts(*original, originals) || counts == count_members(*copy, copies), who,
        ": expected ", class_of(*original),
        " to have the tensor members that its reset() sets, got ",
        "one set to another tensor, which a replica cannot copy; only LibTorch's usual layers, ",
        "such as Linear and Embedding, may have such members");
  }
}

// The tensors get new values but keep their identity, which the members of LibTorch's modules rely
// on. With grad mode off a gradient edge stays, because the backward of an earlier forward may
// still need it.
void DataParallelBase::Replica::update(bool with_grad) const {
  namespace autograd = torch::autograd::impl;
  for (const auto& [original, copy] : layers) {
    if (copy->is_training() != original->is_training()) copy->train(original->is_training());
  }
  for (const auto& [original, copy] : tensors) {
    const auto values = to_device(original, device, /*copy=*/true);
    copy.set_data(values.detach());
    if (!with_grad) continue;
    autograd::set_gradient_edge(
        copy, values.requires_grad() ? autograd::gradient_edge(values) : torch::autograd::Edge());
  }
}

DataParallelBase::DataParallelBase(ModulePtr module, const DataParallelOptions& options)
    : module_(std::move(module)),
      device_ids_(resolved(options.device_ids)),
      output_device_(options.output_device ? resolve_device(*options.output_device, who)
                     : device_ids_.empty() ? cpu()
                                           : device_ids_.front()),
      dim_(options.dim) {
  TORCH_CHECK(module_ != nullptr, who, ": expected a module, got null");
  if (device_ids_.size() == 1) module_->to(device_ids_.front());
  if (device_ids_.size() > 1) make_replicas();
}

DataParallelBase::~DataParallelBase() = default;

void DataParallelBase::make_replicas() {
  std::deque<KeepGenerator> generators(1);
  for (int i = 0; i < num_gpus(); ++i) {
    generators.emplace_back(at::globalContext().defaultGenerator(gpu(i)));
  }
  const c10::InferenceMode trainable(false);
  const KeepData data(*module_);
  std::set<std::type_index> tried;
  check_cloneable(*module_, tried);
  layers_.clear();
  members_.clear();
  replicas_.clear();
  for (size_t i = 1; i < device_ids_.size(); ++i) {
    auto& replica = replicas_.emplace_back(Replica{.device = device_ids_[i]});
    replica.module = clone_of(*module_, replica.device);
    replica.pair_up(module_, replica.module);
    replica.set_members();
  }
  replicas_.front().check_members();
  if (is_uninitialized(*module_)) return;
  layers_ = module_->modules();
  for (const auto& layer : layers_) {
    for (auto* member : tensor_members(*layer)) members_.push_back(member);
  }
  tensors_ = current_tensors();
}

DataParallelBase::Tensors DataParallelBase::current_tensors() const {
  // This runs at each forward, and asking the module for all tensors at once would also build their
  // names.
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
    check_initialized(*module_, who);
    make_replicas();
  }
  for (const auto& pair : replicas_.front().tensors) {
    TORCH_CHECK(pair.original.device() == device_ids_.front(), who,
                ": expected the module's parameters and buffers on the first device, ",
                device_ids_.front(), ", got one on ", pair.original.device());
  }
  const bool with_grad = at::GradMode::is_enabled();
  const c10::InferenceMode trainable(false);  // it turns grad mode on, so it comes first
  const at::AutoGradMode grad_mode(with_grad);
  for (size_t i = 1; i < count; ++i) replicas_[i - 1].update(with_grad);
}

torch::nn::Module& DataParallelBase::replica(size_t index) const {
  return index == 0 ? *module_ : *replicas_[index - 1].module;
}

std::vector<DataParallelBase::Tensors> DataParallelBase::scatter(const Tensors& inputs) const {
  const size_t devices = device_ids_.size();
  std::vector<Tensors> chunks;  // one entry per input
  std::optional<size_t> count;
  for (const auto& input : inputs) {
    auto& of_input = chunks.emplace_back();
    if (!input.defined()) continue;
    TORCH_CHECK(devices == 1 || input.dim() > 0, who,
                ": expected tensors of at least one dimension, got a 0-dim tensor");
    of_input = devices == 1 ? Tensors{input} : input.chunk(static_cast<int64_t>(devices), dim_);
    if (!count) count = of_input.size();
    TORCH_CHECK(count == of_input.size(), who,
                ": expected tensors with as many chunks as the first,", " which has ", *count,
                " along dimension ", dim_, " on ", devices, " devices, got one of shape ",
                input.sizes(), " with ", of_input.size());
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
  {
    std::vector<std::jthread> threads;  // joins all, also if one cannot be started
    threads.reserve(count - 1);
    for (size_t i = 1; i < count; ++i) {
      threads.emplace_back([&, i] { caller.run([&] { run_one(i); }); });
    }
    run_one(0);
  }
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
    for (const auto& of_replica : outputs) {
      parts.push_back(to_device(of_replica[k], output_device_));
      numbers = numbers && parts.back().dim() == 0;
    }
    if (numbers) {
      TORCH_WARN_ONCE(who, ": the replicas returned 0-dim tensors, which are joined to a ",
                      "vector with one entry per replica");
      for (auto& part : parts) part = part.view(1);
    }
    joined[k] = at::cat(parts, dim_);
  }
  return joined;
}

void DataParallelBase::refuse_outputs(size_t index) {
  TORCH_CHECK(false, who, ": expected outputs with the same lengths, keys and undefined tensors ",
              "from every replica, got different ones from replicas 0 and ", index);
}

}  // namespace sconce::nn
