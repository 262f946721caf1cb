#include "sconce/report/summary.hpp"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <array>
#include <deque>
#include <ostream>
#include <set>
#include <typeinfo>

#include "nn/keep_generator.hpp"
#include "report/layer_outputs.hpp"
#include "repr/module_name.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/mode_guard.hpp"

namespace sconce {

namespace {

using Tensors = std::vector<torch::Tensor>;
using Shapes = std::vector<std::vector<int64_t>>;

struct Output {
  Shapes shapes = {};
  int64_t bytes = 0;
};

Output output_of(const Tensors& tensors) {
  Output output;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    output.shapes.push_back(tensor.sizes().vec());
    output.bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return output;
}

template <class T>
bool add(Output& output, torch::nn::AnyValue& value) {
  const auto* typed = value.try_get<T>();
  if (typed != nullptr) output = output_of(SummaryCalls::outputs(*typed));
  return typed != nullptr;
}

// Most LibTorch modules return one tensor, but GRU and MultiheadAttention return two, and LSTM
// returns three.
Output output_of(torch::nn::AnyValue& value) {
  using torch::Tensor;
  Output output;
  (void)(add<Tensor>(output, value) || add<std::tuple<Tensor, Tensor>>(output, value) ||
         add<std::tuple<Tensor, std::tuple<Tensor, Tensor>>>(output, value) ||
         add<Tensors>(output, value));
  return output;
}

// Returns the outputs of the model and, if it is a Sequential, of each direct child.
std::vector<Output> run(torch::nn::Module& model, const SummaryCalls& calls) {
  if (typeid(model) != typeid(torch::nn::SequentialImpl)) return {output_of(calls.forward())};
  auto& sequential = static_cast<torch::nn::SequentialImpl&>(model);
  TORCH_CHECK(!sequential.is_empty(),
              "sconce::summary: expected a module, got an empty Sequential");
  std::vector<Output> outputs(1);
  auto value = calls.forward_first(*sequential.begin());
  outputs.push_back(output_of(value));
  for (auto child = sequential.begin() + 1; child != sequential.end(); ++child) {
    value = child->any_forward(std::move(value));
    outputs.push_back(output_of(value));
  }
  outputs[0].shapes = outputs.back().shapes;
  return outputs;
}

void check_devices(const torch::nn::Module& model, const Tensors& inputs) {
  std::set<std::string> devices;
  for (const auto& tensor : model.parameters()) devices.insert(tensor.device().str());
  for (const auto& tensor : model.buffers()) devices.insert(tensor.device().str());
  for (const auto& input : inputs) {
    TORCH_CHECK(devices.empty() || !input.defined() || devices.contains(input.device().str()),
                "sconce::summary: expected inputs on the model's device ", *devices.begin(),
                ", got one on ", input.device());
  }
}

// Adds rows for a module and all its descendants.
class Rows {
 public:
  Rows(Summary& summary, const std::vector<Output>& outputs, const detail::LayerOutputs& inner)
      : summary_(summary), outputs_(outputs), inner_(inner) {}

  void add(const torch::nn::Module& module, const std::string& name, int depth) {
    const auto children = module.named_children();
    SummaryRow row{.name = name, .class_name = module_name(module), .depth = depth};
    row.has_children = !children.is_empty();
    row.is_repeated = !seen_.insert(&module).second;
    for (const auto& tensor : module.parameters(/*recurse=*/false)) count(tensor, row);
    auto output = output_of(module, row);
    row.output_shapes = std::move(output.shapes);
    if (row.parameters > 0 && !row.has_children)
      summary_.forward_backward_bytes += 2 * output.bytes;
    summary_.rows.push_back(std::move(row));
    for (const auto& child : children) add(*child.value(), child.key(), depth + 1);
  }

 private:
  Output output_of(const torch::nn::Module& module, const SummaryRow& row) {
    const bool is_run = row.depth == 0 || (row.depth == 1 && outputs_.size() > 1);
    if (is_run) return outputs_[next_++];
    const auto found = inner_.find(&module);
    if (found == inner_.end()) return {};
    // This byte count covers all runs of the module, so each repeated row counts as 0 bytes.
    return {.shapes = found->second.shapes, .bytes = row.is_repeated ? 0 : found->second.bytes};
  }

  void count(const torch::Tensor& tensor, SummaryRow& row) {
    if (!tensor.defined()) return;
    row.parameters += tensor.numel();
    row.is_trainable = row.is_trainable || tensor.requires_grad();
    if (!counted_.insert(tensor.unsafeGetTensorImpl()).second) return;
    summary_.parameters += tensor.numel();
    summary_.parameter_bytes += static_cast<int64_t>(tensor.nbytes());
    if (tensor.requires_grad()) summary_.trainable_parameters += tensor.numel();
  }

  Summary& summary_;
  const std::vector<Output>& outputs_;  // for modules that were run one at a time
  const detail::LayerOutputs& inner_;   // for all other modules
  size_t next_ = 0;
  std::set<const torch::nn::Module*> seen_ = {};
  std::set<const c10::TensorImpl*> counted_ = {};
};

std::string text_of(const Shapes& shapes) {
  std::string text;
  for (const auto& shape : shapes) {
    text += text.empty() ? "[" : ", [";
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    text += ']';
  }
  return text.empty() ? "--" : text;
}

// Formats the number with commas as thousands separators.
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

std::string parameters_of(const SummaryRow& row) {
  if (row.is_repeated) return "(repeated)";
  if (row.parameters == 0) return "--";
  const auto text = with_commas(row.parameters);
  return row.is_trainable ? text : '(' + text + ')';
}

std::string padded(std::string text, size_t size) {
  text.resize(std::max(size, text.size()), ' ');
  return text;
}

std::string megabytes(int64_t bytes) {
  const auto hundredths = (bytes + 5'000) / 10'000;
  const auto rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + '.' + (rest.size() < 2 ? "0" : "") + rest;
}

}  // namespace

Summary summarize(torch::nn::Module& model, const SummaryCalls& calls) {
  check_devices(model, calls.inputs);
  std::set<std::string> gpus;
  // Initializing lazy layers consumes random numbers, which must not be generated a second time.
  const bool keeps = !nn::has_uninitialized_params(model);
  std::deque<nn::KeepGenerator> generators(keeps ? 1 : 0);
  Summary summary;
  for (const auto& input : calls.inputs) {
    if (!input.defined()) continue;
    summary.input_bytes += static_cast<int64_t>(input.nbytes());
    if (keeps && input.is_cuda() && gpus.insert(input.device().str()).second) {
      generators.emplace_back(at::globalContext().defaultGenerator(input.device()));
    }
  }
  const at::NoGradGuard no_grad;
  const nn::ModeGuard modes(model);
  model.eval();
  std::vector<Output> outputs;
  const auto inner = detail::observe_layers(model, [&] { outputs = run(model, calls); });
  Rows(summary, outputs, inner).add(model, "", 0);
  return summary;
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  std::vector<std::array<std::string, 3>> cells = {{"Layer (name)", "Output shape", "Parameters"}};
  for (const auto& row : summary.rows) {
    cells.push_back({std::string(2 * static_cast<size_t>(row.depth), ' ') + row.class_name +
                         (row.name.empty() ? "" : " (" + row.name + ')'),
                     text_of(row.output_shapes), parameters_of(row)});
  }
  std::array<size_t, 3> widths = {};
  for (const auto& line : cells) {
    for (size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  const std::string rule(widths[0] + widths[1] + widths[2] + 4, '-');
  for (const auto& line : cells) {
    out << padded(line[0], widths[0] + 2) << padded(line[1], widths[1] + 2)
        << std::string(widths[2] - line[2].size(), ' ') << line[2] << '\n';
    if (&line == &cells.front()) out << rule << '\n';
  }
  const int64_t frozen = summary.parameters - summary.trainable_parameters;
  const int64_t bytes =
      summary.input_bytes + summary.forward_backward_bytes + summary.parameter_bytes;
  return out << rule << "\nparameters: " << with_commas(summary.parameters) << ", of which "
             << with_commas(summary.trainable_parameters) << " trainable, " << with_commas(frozen)
             << " not\nmegabytes: input " << megabytes(summary.input_bytes) << ", forward and "
             << "backward " << megabytes(summary.forward_backward_bytes) << ", parameters "
             << megabytes(summary.parameter_bytes) << ", in all " << megabytes(bytes) << '\n';
}

}  // namespace sconce
