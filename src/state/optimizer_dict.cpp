#include "state/optimizer_dict.hpp"

#include <numeric>
#include <utility>

namespace sconce::optim {

namespace {

using c10::IValue;
using c10::impl::GenericDict;

// Reads the states of the parameters in one group. `indices` contains the keys of these states in
// the dict.
void read_states(const std::vector<at::Tensor>& parameters, const std::vector<int64_t>& indices,
                 const GenericDict& states, const std::string& where, const OptimizerDictForm& form,
                 OptimizerContents& contents) {
  TORCH_CHECK_VALUE(indices.size() == parameters.size(), where, ": expected a group of ",
                    parameters.size(), " parameters, got ", indices.size());
  const auto& options = *contents.options.back();
  form.check(options);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto found = states.find(indices[i]);
    TORCH_CHECK_VALUE(found != states.end() || !form.needs_every_state(), where,
                      ": expected a state for each parameter, got no state for parameter ",
                      indices[i]);
    if (found == states.end()) continue;
    contents.states[parameters[i].unsafeGetTensorImpl()] =
        form.read_state(found->value(), parameters, i, options);
  }
}

}  // namespace

IValue write_groups(const torch::optim::Optimizer& optimizer, OptimizerDictForm& form) {
  auto groups = StateVisitor::list();
  int64_t first = 0;
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    const auto& group = optimizer.param_groups()[i];
    const auto options = group.options().clone();
    StateVisitor dict;
    form.visit_group(i, *options, dict);
    std::vector<int64_t> indices(group.params().size());
    std::iota(indices.begin(), indices.end(), first);
    first += std::ssize(indices);
    dict.any_length("params", indices);
    groups.push_back(dict.dict());
  }
  return groups;
}

IValue write_optimizer(const torch::optim::Optimizer& optimizer, OptimizerDictForm& form) {
  GenericDict states(c10::IntType::get(), c10::AnyType::get());
  int64_t index = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        if (const auto state = form.write_state(*found->second, group.options())) {
          states.insert(index, *state);
        }
      }
      ++index;
    }
  }
  auto all = string_dict();
  all.insert("state", states);
  all.insert("param_groups", write_groups(optimizer, form));
  return all;
}

OptimizerContents read_optimizer(const torch::optim::Optimizer& optimizer, const IValue& dict,
                                 const std::string& where, OptimizerDictForm& form) {
  StateVisitor reader(dict, where);
  auto states = string_dict();
  std::vector<IValue> dicts;
  reader("state", states);
  reader.any_length("param_groups", dicts);
  const auto& groups = optimizer.param_groups();
  TORCH_CHECK_VALUE(dicts.size() == groups.size(), where, ": expected ", groups.size(),
                    " parameter groups, got ", dicts.size());
  OptimizerContents contents;
  for (size_t i = 0; i < groups.size(); ++i) {
    contents.options.push_back(groups[i].options().clone());
    StateVisitor group(dicts[i], where);
    form.visit_group(i, *contents.options.back(), group);
    std::vector<int64_t> indices;
    group.any_length("params", indices);
    read_states(groups[i].params(), indices, states, where, form, contents);
  }
  return contents;
}

}  // namespace sconce::optim
