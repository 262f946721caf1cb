#include "sconce/nn/state_dict.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

#include "nn/can_copy.hpp"
#include "nn/name_hashes.hpp"
#include "sconce/nn/lazy.hpp"

namespace sconce::nn {

namespace {

constexpr auto loader = "sconce::nn::load_state_dict: ";

// Returns all tensor names in the module, in Python's order.
void append_names(const torch::nn::Module& module, const std::string& prefix,
                  std::vector<std::pair<std::string, torch::Tensor>>& found) {
  const auto append = [&](const StateDict& own) {
    for (const auto& item : own) {
      if (item.value().defined()) found.emplace_back(prefix + item.key(), item.value());
    }
  };
  append(module.named_parameters(/*recurse=*/false));
  append(module.named_buffers(/*recurse=*/false));
  for (const auto& child : module.named_children()) {
    append_names(*child.value(), prefix + child.key() + ".", found);
  }
}

// A tensor in the module, with all of its names.
struct Target {
  torch::Tensor tensor;
  std::vector<std::string> names = {};
};

std::vector<Target> targets_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> names;
  append_names(module, "", names);
  std::vector<Target> targets;
  std::unordered_map<const c10::TensorImpl*, size_t> places;
  for (const auto& [name, tensor] : names) {
    const auto [place, is_new] = places.emplace(tensor.unsafeGetTensorImpl(), targets.size());
    if (is_new) targets.push_back({tensor});
    targets[place->second].names.push_back(name);
  }
  return targets;
}

// Checks all tensors first, because a copy that fails midway would leave some tensors modified.
void check_values(const std::vector<Target>& targets, const StateDict& state) {
  for (const auto& [tensor, names] : targets) {
    for (const auto& name : names) {
      const auto* from = state.find(name);
      if (from == nullptr) continue;
      TORCH_CHECK(from->defined() && from->layout() == c10::kStrided && !from->is_meta(), loader,
                  "expected a strided tensor with data for '", name, "'");
      TORCH_CHECK(can_copy(tensor, *from), loader, "expected values that can be converted to ",
                  tensor.scalar_type(), " for '", name, "', got a ", from->toString());
    }
  }
}

StateDict renamed(const StateDict& state, const LoadOptions& options) {
  if (!options.rename) return state;
  std::set<std::string> names;
  std::vector<std::pair<std::string, torch::Tensor>> entries;
  for (const auto& item : state) {
    const std::string name = options.rename(item.key());
    if (name.empty()) continue;
    TORCH_CHECK(names.insert(name).second, loader, "rename: expected a unique name for '",
                item.key(), "', got '", name, "', the name of another entry");
    entries.emplace_back(name, item.value());
  }
  std::vector<std::string_view> in_order;
  for (const auto& entry : entries) in_order.push_back(entry.first);
  check_name_hashes(in_order, std::string(loader) + "rename: ");
  StateDict result;
  for (const auto& [name, tensor] : entries) result.insert(name, tensor);
  return result;
}

// Returns whether the name belongs to a BatchNorm counter, which PyTorch versions before 0.4.1 did
// not save.
bool is_batch_count(std::string_view name) {
  constexpr std::string_view count = "num_batches_tracked";
  return name.ends_with(count) &&
         (name.size() == count.size() || name[name.size() - count.size() - 1] == '.');
}

// Determines, for each tensor of an uninitialized lazy layer, whether the state contains compatible
// tensors for that layer.
std::map<std::string, bool> fits_of_lazy_layers(torch::nn::Module& module, const StateDict& state) {
  std::map<std::string, bool> fits;
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    const auto* layer = dynamic_cast<const LazyLayer*>(&part);
    if (layer == nullptr || layer->is_initialized()) return;
    const std::string prefix = path.empty() ? "" : path + ".";
    const auto trial = part.clone();
    const bool fit =
        dynamic_cast<LazyLayer&>(*trial).materialize_from([&](const std::string& name) {
          const auto* tensor = state.find(prefix + name);
          return tensor == nullptr ? torch::Tensor() : *tensor;
        });
    for (const auto& item : part.named_parameters(/*recurse=*/false))
      fits[prefix + item.key()] = fit;
    for (const auto& item : part.named_buffers(/*recurse=*/false)) {
      if (!is_batch_count(item.key())) fits[prefix + item.key()] = fit;
    }
  });
  return fits;
}

std::ostream& operator<<(std::ostream& out, const SizeMismatch& entry) {
  out << entry.name << " of " << c10::IntArrayRef(entry.found) << " for ";
  return entry.expected ? out << c10::IntArrayRef(*entry.expected)
                        : out << "an uninitialized layer";
}

// The maximum number of names in an error message. A state dict from a different model may have
// hundreds of mismatched names.
constexpr size_t max_named = 10;

std::string text(const LoadReport& report) {
  std::ostringstream out;
  const auto add = [&](const char* what, const auto& entries) {
    for (size_t i = 0; i < std::min(entries.size(), max_named); ++i) {
      out << (i == 0 ? "; " : ", ") << (i == 0 ? what : "") << entries[i];
    }
    if (entries.size() > max_named) out << " and " << entries.size() - max_named << " more";
  };
  add("missing: ", report.missing_keys);
  add("unexpected: ", report.unexpected_keys);
  add("mismatched: ", report.mismatched_keys);
  return out.str();
}

struct Copy {
  torch::Tensor to;
  torch::Tensor from;
};

}  // namespace

StateDict state_dict(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& target : targets_of(module)) {
    state.insert(target.names.front(), target.tensor.detach());
  }
  return state;
}

LoadReport load_state_dict(torch::nn::Module& module, const StateDict& given,
                           const LoadOptions& options) {
  const at::NoGradGuard no_grad;
  const StateDict state = renamed(given, options);
  const auto targets = targets_of(module);
  check_values(targets, state);
  const auto lazy = fits_of_lazy_layers(module, state);
  LoadReport report;
  std::vector<Copy> copies;
  std::set<std::string> known;
  for (const auto& [tensor, names] : targets) {
    bool found = false;
    for (const auto& name : names) {
      known.insert(name);
      const auto* from = state.find(name);
      if (from == nullptr) continue;
      found = true;
      const auto fit = lazy.find(name);
      if (tensor.dim() == 0 && from->sizes() == c10::IntArrayRef{1}) {  // PyTorch before 0.4
        copies.push_back({tensor, from->select(0, 0)});
        continue;
      }
      if (fit == lazy.end() ? from->sizes() == tensor.sizes() : fit->second) {
        copies.push_back({tensor, *from});
        continue;
      }
      report.mismatched_keys.push_back({.name = name, .found = from->sizes().vec()});
      if (fit == lazy.end()) report.mismatched_keys.back().expected = tensor.sizes().vec();
    }
    if (!found && !is_batch_count(names.front())) report.missing_keys.push_back(names.front());
  }
  for (const auto& item : state) {
    if (!known.contains(item.key())) report.unexpected_keys.push_back(item.key());
  }
  const std::string faults = text(report);
  TORCH_CHECK(!options.strict || faults.empty(), loader,
              "expected a state that matches the module's names and shapes", faults);
  materialize_from(module, state);  // uses set_data, so `copies` stays valid
  for (const auto& [to, from] : copies) to.copy_(from);
  return report;
}

}  // namespace sconce::nn
