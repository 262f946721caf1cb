#include "sconce/training/stateful.hpp"

#include <c10/util/Type.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/ema.hpp"
#include "state/optimizer_state.hpp"

namespace sconce {

std::string detail::class_name(const std::type_info& type) {
  const std::string name = c10::demangle(type.name());
  const auto end_of_namespaces = name.rfind("::", name.find('<'));
  return end_of_namespaces == std::string::npos ? name : name.substr(end_of_namespaces + 2);
}

Stateful::Stateful(torch::nn::Module& module)
    : Stateful([&module] { return io::as_ivalue(nn::state_dict(module)); },
               [&module](const c10::IValue& state) {
                 nn::load_state_dict(module, io::as_state_dict(state));
               }) {}

Stateful::Stateful(torch::optim::Optimizer& optimizer)
    : type_(detail::class_name(typeid(optimizer))) {
  const auto functions = optim::optimizer_state(optimizer);
  state_dict_ = [&optimizer, functions] { return functions.state_dict(optimizer); };
  options_ = [&optimizer, functions] { return functions.options(optimizer); };
  load_state_dict_ = [&optimizer, functions](const c10::IValue& state) {
    functions.load_state_dict(optimizer, state);
  };
}

Stateful::Stateful(optim::ExponentialMovingAverage& averages)
    : Stateful([&averages] { return io::as_ivalue(averages.state_dict()); },
               [&averages](const c10::IValue& state) {
                 averages.load_state_dict(io::as_state_dict(state));
               }) {}

}  // namespace sconce
