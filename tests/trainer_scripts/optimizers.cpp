#include "trainer_scripts/optimizers.hpp"

#include <algorithm>
#include <map>

#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"

namespace trainer_scripts {

namespace {

namespace optim = sconce::optim;
using torch::optim::OptimizerParamGroup;

using States = std::map<int64_t, std::map<std::string, torch::Tensor>>;

// Returns the state tensors for each parameter, keyed by their Python names.
States states_of(torch::optim::Optimizer& optimizer) {
  States states;
  if (auto* ours = dynamic_cast<optim::Optimizer*>(&optimizer)) {
    const auto saved = ours->state_dict().toGenericDict();
    for (const auto& of_parameter : saved.at("state").toGenericDict()) {
      for (const auto& entry : of_parameter.value().toGenericDict()) {
        states[of_parameter.key().toInt()][entry.key().toStringRef()] = entry.value().toTensor();
      }
    }
    return states;
  }
  int64_t index = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        const auto& state = dynamic_cast<torch::optim::SGDParamState&>(*found->second);
        states[index]["momentum_buffer"] = state.momentum_buffer();
      }
      ++index;
    }
  }
  return states;
}

}  // namespace

std::vector<torch::Tensor> parameters_of(const NetImpl& net, const std::string& part) {
  if (part == "head") return net.head->parameters();
  if (part == "body") return net.body->parameters();
  return net.parameters();
}

Groups first_groups(const json& spec, const NetImpl& net) {
  const std::string covers = spec.at("covers");
  if (covers != "both") return {parameters_of(net, covers)};
  return {parameters_of(net, "body"), parameters_of(net, "head")};
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const json& spec, const Groups& lists) {
  const std::string kind = spec.at("kind");
  const std::string kernels = spec.at("kernels");
  const double lr = spec.at("lr"), weight_decay = spec.value("weight_decay", 0.0);
  std::vector<OptimizerParamGroup> groups;
  for (const auto& list : lists) groups.emplace_back(list);
  const optim::ExtraOptions extra = {.kernels = kernels == "fused"     ? optim::Kernels::fused
                                                : kernels == "foreach" ? optim::Kernels::foreach
                                                                       : optim::Kernels::for_loop};
  if (kind == "torch") {
    return std::make_unique<torch::optim::SGD>(
        groups, torch::optim::SGDOptions(lr).momentum(0.75).weight_decay(weight_decay));
  }
  if (kind == "sgd") {
    auto options = torch::optim::SGDOptions(lr).momentum(spec.value("momentum", 0.0));
    options.weight_decay(weight_decay).nesterov(spec.value("flag", false));
    return std::make_unique<optim::SGD>(groups, options, extra);
  }
  const bool flag = spec.value("flag", false);
  if (kind == "adagrad") {
    auto options = torch::optim::AdagradOptions(lr).lr_decay(flag ? 0.25 : 0);
    return std::make_unique<optim::Adagrad>(groups, options.weight_decay(weight_decay), extra);
  }
  if (kind == "rmsprop") {
    auto options = torch::optim::RMSpropOptions(lr).momentum(spec.value("momentum", 0.0));
    options.weight_decay(weight_decay).centered(flag);
    return std::make_unique<optim::RMSprop>(groups, options, extra);
  }
  if (kind == "nadam") {
    auto options = optim::NAdamOptions(lr).decoupled_weight_decay(flag);
    return std::make_unique<optim::NAdam>(groups, options.weight_decay(weight_decay), extra);
  }
  const auto with = [&](auto options) { return options.weight_decay(weight_decay).amsgrad(flag); };
  if (kind == "adam") {
    return std::make_unique<optim::Adam>(groups, with(torch::optim::AdamOptions(lr)), extra);
  }
  return std::make_unique<optim::AdamW>(groups, with(torch::optim::AdamWOptions(lr)), extra);
}

optim::Optimizer& of_sconce(torch::optim::Optimizer& optimizer) {
  return dynamic_cast<optim::Optimizer&>(optimizer);
}

void move_away(std::unique_ptr<torch::optim::Optimizer>& optimizer) {
  static_assert(!std::is_move_constructible_v<optim::SGD>);
  auto& sgd = dynamic_cast<torch::optim::SGD&>(*optimizer);
  optimizer = std::make_unique<torch::optim::SGD>(std::move(sgd));
}

std::vector<int64_t> places_in(const std::vector<torch::Tensor>& list,
                               const std::vector<torch::Tensor>& group) {
  std::vector<int64_t> places;
  for (const auto& tensor : group) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const auto& other) { return other.is_same(tensor); });
    places.push_back(found == list.end() ? -1 : found - list.begin());
  }
  return places;
}

void trace_optimizer(const std::string& name, torch::optim::Optimizer& optimizer,
                     const NetImpl& net, Trace& trace) {
  std::string text = name;
  for (const auto& group : optimizer.param_groups()) {
    text += " lr " + number(group.options().get_lr()) + " of";
    for (const int64_t place : places_in(net.parameters(), group.params())) {
      text += " " + std::to_string(place);
    }
  }
  trace.line(text);
  const auto states = states_of(optimizer);
  std::vector<torch::Tensor> tensors;
  text = "  state";
  for (const auto& [index, state] : states) {
    text += " " + std::to_string(index);
    for (const auto& [key, tensor] : state) {
      text += "," + key;
      tensors.push_back(tensor);
    }
  }
  trace.tensors(text, tensors);
}

}  // namespace trainer_scripts
