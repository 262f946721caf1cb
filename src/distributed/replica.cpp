#include "distributed/replica.hpp"

#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <deque>
#include <set>
#include <typeindex>
#include <typeinfo>

#include "distributed/tensor_members.hpp"
#include "nn/keep_generator.hpp"
#include "sconce/devices.hpp"
#include "to_device.hpp"

namespace sconce::nn {

namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

std::string class_of(const torch::nn::Module& module) {
  return c10::demangle(typeid(module).name());
}

template <class... Classes>
bool is_one_of(const torch::nn::Module& module) {
  return ((dynamic_cast<const Classes*>(&module) != nullptr) || ...);
}

[[noreturn]] void refuse_module(const torch::nn::Module& module, const std::string& reason) {
  const std::string class_name = class_of(module);
  TORCH_CHECK((!is_one_of<torch::nn::ParameterListImpl, torch::nn::ParameterDictImpl>(module)),
              data_parallel_name, ": expected modules that can be cloned, got ", class_name,
              ", whose parameters LibTorch's clone() drops; register the parameters with "
              "register_parameter in the reset() function of the enclosing module");
  TORCH_CHECK(false, data_parallel_name, ": expected modules that can be cloned (", class_name,
              " must derive from torch::nn::Cloneable<", class_name, ">), got the error: ", reason);
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

// A clone's `reset` function creates the clone's children. If a child's class does not define
// `clone`, the child keeps its initial values, and LibTorch does not report an error. Therefore,
// this function tries to clone one layer of each class.
void check_cloneable(const torch::nn::Module& module, std::set<std::type_index>& tried) {
  for (const auto& child : module.children()) {
    const torch::nn::Module& layer = *child;
    check_cloneable(layer, tried);
    if (tried.insert(typeid(layer)).second) clone_of(layer);
  }
}

// For each tensor, returns the expected number of layer members that refer to the tensor: one if
// the layer registered the tensor, and zero otherwise.
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

// On destruction, restores the data of the original module's tensors. LibTorch's clone modifies a
// tensor's data if `reset` registers a tensor that was passed as an option, as in
// `Embedding::from_pretrained`.
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

}  // namespace

std::vector<torch::Tensor> tensors_of(const torch::nn::Module& module, bool recurse) {
  auto tensors = module.parameters(recurse);
  for (const auto& buffer : module.buffers(recurse)) tensors.push_back(buffer);
  return tensors;
}

std::vector<DataParallelBase::Replica> DataParallelBase::Replica::make(
    const ModulePtr& module, const std::vector<torch::Device>& devices) {
  std::deque<KeepGenerator> generators(1);
  for (int i = 0; i < num_gpus(); ++i) {
    generators.emplace_back(at::globalContext().defaultGenerator(gpu(i)));
  }
  const c10::InferenceMode trainable(false);
  const KeepData data(*module);
  std::set<std::type_index> tried;
  check_cloneable(*module, tried);
  std::vector<Replica> replicas;
  for (size_t i = 1; i < devices.size(); ++i) {
    auto& replica = replicas.emplace_back(Replica{.device = devices[i]});
    replica.module = clone_of(*module, replica.device);
    replica.pair_up(module, replica.module);
    replica.set_members();
  }
  replicas.front().check_members();
  return replicas;
}

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
      // This tensor is the weight of an Embedding or a loss module, and was passed to the
      // constructor as an option. `set_members` sets the layer's members later.
      TORCH_CHECK(!tensor_members(layer).empty(), data_parallel_name, ": expected reset() of ",
                  class_of(layer), " to register a new tensor for '", item.key(),
                  "', got a clone that shares the original module's tensor");
      copy = to_device(copy.detach(), device, /*copy=*/true);
    }
    // The copy passes gradients only through an autograd edge to the original. If requires_grad is
    // false, a forward pass can remove the edge to the original.
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

// Sets the tensor members of the copied layers. A layer may compute with tensors that it did not
// register, because a user may have set a member to another layer's tensor or to an unregistered
// tensor.
void DataParallelBase::Replica::set_members() {
  for (const auto& [original, copy] : layers) {
    const auto from = tensor_members(*original);
    const auto to = tensor_members(*copy);
    for (size_t i = 0; i < from.size(); ++i) *to[i] = copy_of(*from[i]);
  }
}

// Checks the layers for which `tensor_members` returns nothing. A replica cannot set the members of
// these layers, so the members must refer to the tensors that `reset` sets.
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
        counts == usual_counts(*original, originals) || counts == count_members(*copy, copies),
        data_parallel_name, ": expected ", class_of(*original),
        " to have the tensor members that its reset() sets, got a "
        "member set to a different tensor, which a replica cannot copy; only LibTorch's standard "
        "layers, "
        "such as Linear and Embedding, may have such members");
  }
}

// The replica's tensors receive new values but remain the same objects, because the members of
// LibTorch modules refer to these objects. If grad mode is disabled, an existing gradient edge
// stays, because the backward pass of an earlier forward pass may still need it.
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

}  // namespace sconce::nn
