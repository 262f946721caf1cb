#include "sconce/optim/decay_groups.hpp"

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "repr/module_name.hpp"

namespace sconce::optim {

namespace {

// The distinct parameters of a model, and whether weight decay applies to each.
struct SplitParameters {
  std::vector<std::pair<torch::Tensor, bool>> all = {};
  std::unordered_map<const void*, size_t> place_of = {};

  void add(const torch::Tensor& parameter, bool decays) {
    const auto [found, is_new] = place_of.try_emplace(parameter.unsafeGetTensorImpl(), all.size());
    if (is_new) all.emplace_back(parameter, true);
    all[found->second].second &= decays;
  }
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void add_parameters(const torch::nn::Module& module, SplitParameters& parameters) {
  const std::string type = class_name(module);
  const bool is_norm_or_embedding = contains(type, "Norm") || contains(type, "Embedding");
  for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
    const bool decays = !is_norm_or_embedding && !contains(parameter.key(), "bias") &&
                        !contains(parameter.key(), "embedding");
    parameters.add(parameter.value(), decays);
  }
  for (const auto& child : module.children()) add_parameters(*child, parameters);
}

}  // namespace

DecayGroups decay_groups(const torch::nn::Module& model, double weight_decay) {
  constexpr auto caller = "sconce::optim::decay_groups";
  TORCH_CHECK(std::isfinite(weight_decay) && weight_decay >= 0, caller,
              ": expected weight_decay to be at least 0, got ", weight_decay);
  SplitParameters parameters;
  add_parameters(model, parameters);
  TORCH_CHECK(!parameters.all.empty(), caller, ": expected a model with parameters, got ",
              c10::demangle(typeid(model).name()),
              " without parameters; register each layer in its module");
  std::vector<DecayGroups::Group> groups;
  for (const bool decays : {true, false}) {
    DecayGroups::Group group = {.params = {}, .weight_decay = decays ? weight_decay : 0};
    for (const auto& [parameter, its] : parameters.all) {
      if (its == decays) group.params.push_back(parameter);
    }
    if (!group.params.empty()) groups.push_back(std::move(group));
  }
  return DecayGroups(std::move(groups));
}

}  // namespace sconce::optim
