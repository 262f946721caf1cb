#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"

// The C++ counterpart of reference/grad_scaler.py: runs its commands and returns the results.
namespace sconce::test {

using amp::GradScaler;
using amp::GradScalerOptions;

inline std::string hex(double value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

// Counterpart of `dump` in reference/grad_scaler.py.
inline std::string dump(const torch::Tensor& tensor) {
  const auto dense = tensor.is_sparse() ? tensor.to_dense() : tensor;
  const auto values = dense.detach().to(torch::kFloat).reshape(-1).contiguous();
  std::string text;
  for (int64_t i = 0; i < values.numel(); ++i) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x",
                  std::bit_cast<uint32_t>(values.data_ptr<float>()[i]));
    text += digits;
  }
  return text;
}

// Returns whether two dumps are equal within Python's tolerances for the type.
inline bool close(const std::string& actual, const std::string& expected, torch::ScalarType type) {
  const float rtol = type == torch::kHalf ? 1e-3F : 1.3e-6F;
  if (actual.size() != expected.size()) return false;
  for (size_t i = 0; i < actual.size(); i += 8) {
    const auto number = [i](const std::string& text) {
      return std::bit_cast<float>(
          static_cast<uint32_t>(std::stoul(text.substr(i, 8), nullptr, 16)));
    };
    const float a = number(actual), e = number(expected);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!(std::abs(a - e) <= 1e-5F + rtol * std::abs(e))) return false;
  }
  return true;
}

using Tensors = std::map<std::string, torch::Tensor>;

inline Tensors tensors_of(const torch::optim::SGDParamState& state) {
  return {{"momentum_buffer", state.momentum_buffer()}};
}

template <class AdamState>
Tensors tensors_of(const AdamState& state) {
  return {{"step", torch::tensor(static_cast<float>(state.step()))},
          {"exp_avg", state.exp_avg()},
          {"exp_avg_sq", state.exp_avg_sq()},
          {"max_exp_avg_sq", state.max_exp_avg_sq()}};
}

// An optimizer in a script, together with its parameters and the code that produces their
// gradients.
class ScriptOptimizer {
 public:
  explicit ScriptOptimizer(std::istringstream& arguments) {
    std::string name, dtype;
    double lr = 0, momentum = 0, dampening = 0, decay = 0;
    bool nesterov = false, amsgrad = false;
    arguments >> name >> kernels >> lr >> momentum >> dampening >> decay >> nesterov >> amsgrad >>
        maximize_ >> dtype >> sparse_;
    for (int64_t size = 0; arguments >> size;) {
      const auto values = torch::arange(size, torch::kFloat) / 4 - 1;
      const auto type = dtype == "float16" ? torch::kHalf : torch::kFloat;
      params.push_back(values.reshape({size, 1}).to(type).requires_grad_());
    }
    REQUIRE_FALSE(params.empty());
    if (name == "SGD") {
      auto options = torch::optim::SGDOptions(lr).momentum(momentum).dampening(dampening);
      make<torch::optim::SGD, torch::optim::SGDParamState, optim::SGD>(
          options.weight_decay(decay).nesterov(nesterov));
    } else if (name == "Adam") {
      make<torch::optim::Adam, torch::optim::AdamParamState, optim::Adam>(
          torch::optim::AdamOptions(lr).weight_decay(decay).amsgrad(amsgrad));
    } else if (name == "Adagrad") {
      make_ours<optim::Adagrad>(
          torch::optim::AdagradOptions(lr).weight_decay(decay).lr_decay(dampening));
    } else if (name == "RMSprop") {
      auto options = torch::optim::RMSpropOptions(lr).weight_decay(decay).momentum(momentum);
      make_ours<optim::RMSprop>(options.centered(amsgrad));
    } else if (name == "NAdam") {
      make_ours<optim::NAdam>(
          optim::NAdamOptions(lr).weight_decay(decay).decoupled_weight_decay(amsgrad));
    } else {
      make<torch::optim::AdamW, torch::optim::AdamWParamState, optim::AdamW>(
          torch::optim::AdamWOptions(lr).weight_decay(decay).amsgrad(amsgrad));
    }
  }

  std::vector<torch::Tensor> losses(std::istringstream& numbers) const {
    std::vector<torch::Tensor> losses;
    for (const auto& p : params) {
      const auto index = torch::tensor({0, 1, 0}, torch::kLong);
      const auto x = sparse_ ? torch::embedding(p, index, -1, false, true) : p;
      std::vector<double> values;
      for (std::string text; static_cast<int64_t>(values.size()) < x.size(0) && numbers >> text;) {
        values.push_back(std::stod(text));
      }
      const auto gradient = torch::tensor(values, torch::kDouble).to(p.scalar_type());
      losses.push_back((x * gradient.reshape({-1, 1})).sum());
    }
    return losses;
  }

  Tensors tensors() const {
    Tensors all;
    for (const auto& [name, tensor] : state()) {
      const bool momentum = name.starts_with("momentum_buffer");
      if (!tensor.defined() || (momentum && !tensor.to_dense().any().item<bool>())) continue;
      all[name] = tensor;
    }
    for (size_t i = 0; i < params.size(); ++i) {
      all["param" + std::to_string(i)] = params[i];
      if (params[i].grad().defined()) all["grad" + std::to_string(i)] = params[i].grad();
    }
    return all;
  }

  bool has_gradients() const {
    return std::any_of(params.begin(), params.end(),
                       [](const auto& p) { return p.grad().defined(); });
  }

  std::string kernels;
  std::vector<torch::Tensor> params;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::function<Tensors()> state;  // keyed by Python's keys and the parameter's number

 private:
  template <class Stock, class StockState, class Ours, class Options>
  void make(const Options& options) {
    if (kernels != "stock") return make_ours<Ours>(options);
    optimizer = std::make_unique<Stock>(params, options);
    state = [this] { return state_of_stock<StockState>(); };
  }

  template <class Ours, class Options>
  void make_ours(const Options& options) {
    using optim::Kernels;
    static const std::map<std::string, Kernels> modes = {
        {"for_loop", Kernels::for_loop}, {"foreach", Kernels::foreach}, {"fused", Kernels::fused}};
    auto made = std::make_unique<Ours>(
        params, options, optim::ExtraOptions{.kernels = modes.at(kernels), .maximize = maximize_});
    state = [&ours = *made] { return state_of(ours); };
    optimizer = std::move(made);
  }

  template <class StockState>
  Tensors state_of_stock() const {
    Tensors all;
    for (size_t i = 0; i < params.size(); ++i) {
      const auto found = optimizer->state().find(params[i].unsafeGetTensorImpl());
      if (found == optimizer->state().end()) continue;
      for (const auto& [key, tensor] : tensors_of(static_cast<StockState&>(*found->second))) {
        all[key + std::to_string(i)] = tensor;
      }
    }
    return all;
  }

  static Tensors state_of(const optim::Optimizer& ours) {
    Tensors all;
    const auto states = ours.state_dict().toGenericDict().at("state").toGenericDict();
    for (const auto& of_parameter : states) {
      for (const auto& entry : of_parameter.value().toGenericDict()) {
        all[entry.key().toStringRef() + std::to_string(of_parameter.key().toInt())] =
            entry.value().toTensor();
      }
    }
    return all;
  }

  bool maximize_ = false;
  bool sparse_ = false;
};

// Runs the script commands from reference/grad_scaler.py.
class Script {
 public:
  // Runs a command and returns the command's note, which is either its result or its error message.
  std::string run(const std::string& command) {
    std::istringstream arguments(command);
    std::string name;
    arguments >> name;
    current_ = nullptr;
    try {
      return call(name, arguments);
    } catch (const c10::Error& error) {
      return std::string("refused:") + error.what_without_backtrace();
    }
  }

  // Returns a description of the scaler's state. In the reference scripts, this text follows the
  // note.
  std::string state() const {
    std::ostringstream text;
    const auto state = scaler_->state_dict().toGenericDict();
    const auto number = [&](const char* key) { return hex(state.at(key).toDouble()); };
    text << scaler_->is_enabled() << " " << hex(scaler_->get_scale()) << " ";
    if (state.empty()) return text.str() + "empty";
    text << number("scale") << " " << number("growth_factor") << " " << number("backoff_factor")
         << " " << state.at("growth_interval").toInt() << " "
         << state.at("_growth_tracker").toInt();
    return text.str();
  }

  // Returns the optimizer that the last command used, or null if the last command did not use an
  // optimizer.
  const ScriptOptimizer* current() const { return current_; }

 private:
  std::string call(const std::string& name, std::istringstream& arguments) {
    if (name == "scaler" || name == "reload") {
      renew_scaler(name, arguments);
    } else if (name == "optimizer") {
      optimizers_.push_back(std::make_unique<ScriptOptimizer>(arguments));
    } else if (name == "update") {
      double scale = 0;
      arguments >> scale ? scaler_->update(scale) : scaler_->update();
    } else if (name == "interval") {
      int64_t interval = 0;
      arguments >> interval;
      scaler_->set_growth_interval(interval);
    } else if (name == "factors") {
      double growth = 0, backoff = 0;
      arguments >> growth >> backoff;
      scaler_->set_growth_factor(growth);
      scaler_->set_backoff_factor(backoff);
    } else if (name == "save") {
      saved_ = scaler_->state_dict();
    } else if (name == "load") {
      scaler_->load_state_dict(saved_);
    } else if (name == "load_empty") {
      scaler_->load_state_dict(c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get()));
    } else {
      return call_with_optimizer(name, arguments);
    }
    return "done";
  }

  std::string call_with_optimizer(const std::string& name, std::istringstream& arguments) {
    size_t k = 0;
    arguments >> k;
    auto& it = *optimizers_.at(k);
    if (name != "closure") current_ = &it;
    if (name == "zero") {
      it.optimizer->zero_grad();
    } else if (name == "backward") {
      torch::Tensor sum = torch::zeros({}, torch::kLong);
      for (const auto& loss : it.losses(arguments)) sum = sum + loss;
      scaler_->scale(sum).backward();
    } else if (name == "backward_list") {
      for (const auto& loss : scaler_->scale(it.losses(arguments))) loss.backward();
    } else if (name == "unscale") {
      scaler_->unscale_(*it.optimizer);
    } else if (name == "clip") {
      double max_norm = 0;
      arguments >> max_norm;
      return dump(nn::clip_grad_norm_(it.params, max_norm));
    } else if (name == "step") {
      return step(it);
    } else if (name == "closure") {
      scaler_->step(*it.optimizer, [] { return torch::zeros({}); });
    } else {
      FAIL("no command " << name);
    }
    return "done";
  }

  std::string step(ScriptOptimizer& it) {
    const auto before = dumps(it);
    scaler_->step(*it.optimizer);
    if (!scaler_->is_enabled()) return "done";
    if (!it.has_gradients()) return "idle";
    return dumps(it) == before ? "unchanged" : "changed";  // skipped, or the step is too small
  }

  // Counterpart of `dumps` in reference/grad_scaler.py.
  static std::map<std::string, std::string> dumps(const ScriptOptimizer& it) {
    std::map<std::string, std::string> texts;
    for (const auto& [name, tensor] : it.tensors()) {
      const auto text = dump(tensor);
      const bool zeros = text.find_first_not_of('0') == std::string::npos;
      if (!name.starts_with("grad") && !zeros) texts[name] = text;
    }
    return texts;
  }

  void renew_scaler(const std::string& name, std::istringstream& arguments) {
    GradScalerOptions options{.device = torch::kCPU};
    arguments >> options.enabled >> options.init_scale >> options.growth_factor >>
        options.backoff_factor >> options.growth_interval;
    if (name == "reload") {
      scaler_.emplace(GradScalerOptions{.device = torch::kCPU, .enabled = options.enabled});
      scaler_->load_state_dict(saved_);
    } else {
      scaler_.emplace(options);
      optimizers_.clear();
      saved_ = scaler_->state_dict();
    }
  }

  std::optional<GradScaler> scaler_;
  std::vector<std::unique_ptr<ScriptOptimizer>> optimizers_;
  c10::IValue saved_;
  const ScriptOptimizer* current_ = nullptr;
};

}  // namespace sconce::test
