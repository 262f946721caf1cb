#include "program/recording.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "amp/no_cast_cache.hpp"
#include "program/operator_observer.hpp"
#include "program/prepared_program.hpp"
#include "program/refusals.hpp"
#include "program/tracer.hpp"
#include "sconce/repr.hpp"

namespace sconce::program::detail {

namespace {

void check_example(const StateDict& example) {
  TORCH_CHECK(example.size() > 0, record_error_prefix,
              "expected an example with at least one input, got none");
  const auto device = example[0].value().defined() ? example[0].value().device() : c10::kCPU;
  TORCH_CHECK(device.is_cpu() || device.is_cuda(), record_error_prefix,
              "expected an example on the CPU or a GPU, got an example on ", device);
  for (const auto& item : example) {
    check_name(item.key(), "inputs");
    TORCH_CHECK(item.value().defined(), record_error_prefix, "example '", item.key(),
                "': expected a tensor, got an undefined one");
    TORCH_CHECK(item.value().layout() == at::kStrided && !item.value().is_quantized(),
                record_error_prefix, "example '", item.key(),
                "': expected a dense tensor, got a sparse or quantized tensor");
    TORCH_CHECK(!item.value().is_nested(), record_error_prefix, "example '", item.key(),
                "': expected a dense tensor, got a nested tensor");
    TORCH_CHECK(item.value().device() == device, record_error_prefix, "example '", item.key(),
                "': expected a tensor on ", device,
                " (the device of the first tensor), got a tensor on ", item.value().device());
  }
}

std::vector<Weight> weights_of(const torch::nn::Module* module, size_t first_value) {
  std::vector<Weight> weights;
  if (module == nullptr) return weights;
  std::map<const c10::TensorImpl*, size_t> values;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, WeightKind kind) {
    if (!tensor.defined()) return;
    const size_t next = first_value + values.size();
    const size_t value = values.try_emplace(tensor.unsafeGetTensorImpl(), next).first->second;
    weights.push_back({name, kind, value, tensor, tensor.device().type()});
  };
  for (const auto& item : module->named_parameters()) {
    add(item.key(), item.value(), WeightKind::parameter);
  }
  for (const auto& item : module->named_buffers())
    add(item.key(), item.value(), WeightKind::buffer);
  return weights;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.reshape({-1}).view(at::kByte), b.reshape({-1}).view(at::kByte));
}

// Saves a module's buffers before a run, and restores the buffers on destruction. Some kernels
// modify buffers without going through the dispatcher.
class Buffers {
 public:
  explicit Buffers(const std::vector<Weight>& weights) {
    for (const auto& weight : weights) {
      if (weight.kind == WeightKind::buffer) all_.push_back({weight, weight.tensor.clone()});
    }
  }

  ~Buffers() {
    for (const auto& [weight, before] : all_) {
      if (!same_bytes(before, weight.tensor)) weight.tensor.copy_(before);
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Throws if a buffer has changed.
  void check() const {
    for (const auto& [weight, before] : all_) {
      if (!same_bytes(before, weight.tensor)) {
        reject_write("the function", "the buffer '" + weight.name + "'");
      }
    }
  }

 private:
  std::vector<std::pair<Weight, at::Tensor>> all_ = {};
};

// Returns whether a program's output is close enough to the function's output. Rounding in kernels
// depends on how the memory is aligned, but the outputs of an incorrect program differ much more.
bool are_close(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  if (!a.is_floating_point() || a.numel() == 0) return at::equal(a, b);
  const auto x = a.to(at::kDouble);
  const auto y = b.to(at::kDouble);
  const bool is_short = c10::elementSize(a.scalar_type()) <= 2;
  const double largest = y.nan_to_num(0, 0, 0).abs().max().item<double>();
  const double rtol = is_short ? 3e-2 : 1e-3;
  return at::allclose(x, y, rtol, rtol * largest, /*equal_nan=*/true);
}

// Returns the index of the first output that differs, or std::nullopt if all outputs match.
std::optional<size_t> first_difference(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (i >= b.size() || !are_close(a[i], b[i])) return i;
  }
  return {};
}

}  // namespace

Recording::Recording(const Function& function, const torch::nn::Module* module,
                     const StateDict& example, const RecordOptions& options)
    : function_(function),
      example_((check_example(example), example)),
      options_(options),
      sizes_(example, options.dynamic_shapes),
      weights_(weights_of(module, example.size())) {
  TORCH_CHECK(function_ != nullptr, record_error_prefix,
              "expected a function, got an empty std::function");
}

Graph Recording::record() {
  const at::NoGradGuard no_grad;
  const auto corners = trace_corners();
  Graph graph = merge(corners);
  const auto far = trace(sizes_.farther());
  check(graph, far);
  for (const auto& name : sizes_.names()) graph.sizes.push_back({name, 1});
  set_ports(graph, corners);
  check_shapes(graph, far);
  const PreparedProgram program(graph, example_[0].value().device(), record_error_prefix);
  compare_outputs(program);
  for (size_t i = 0; i < graph.sizes.size(); ++i) graph.sizes[i].min = smallest(program, i);
  graph.metadata = options_.metadata;
  if (options_.save_example) add_example(graph);
  return graph;
}

Tensors Recording::run(const Tensors& inputs) const {
  const amp::NoCastCache no_cache;  // every cast must be recorded as a call
  auto outputs = function_(inputs);
  TORCH_CHECK(!outputs.empty(), record_error_prefix,
              "expected a function that returns tensors, got none");
  for (size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK(outputs[i].defined(), record_error_prefix, "output ", i,
                ": expected a tensor, got an undefined one");
  }
  return outputs;
}

Tensors Recording::run_at(const std::vector<int64_t>& sizes, const Tensors& inputs) const {
  try {
    return run(inputs);
  } catch (const c10::Error& error) {
    if (sizes.empty()) throw;
    TORCH_CHECK(false, record_error_prefix,
                "expected a function that supports all dynamic sizes, but at ",
                at_text(sizes, sizes_.names()), " it throws: ", error.what_without_backtrace());
  }
}

TraceAt Recording::trace(const std::vector<int64_t>& sizes) {
  while (true) {
    const auto inputs = sizes_.inputs(example_, sizes);
    std::vector<Tracer::Input> named;
    for (size_t i = 0; i < inputs.size(); ++i) named.push_back({example_[i].key(), inputs[i]});
    Tracer tracer(named, weights_);
    const Buffers buffers(weights_);
    Tensors outputs;
    const bool is_complete =
        observe_operators(tracer, opened_, [&] { outputs = run_at(sizes, inputs); });
    buffers.check();
    if (is_complete) return {sizes, tracer.finish(outputs)};
  }
}

std::vector<TraceAt> Recording::trace_corners() {
  const auto smaller = sizes_.smaller();
  std::vector<TraceAt> corners;
  for (size_t corner = 0; corner < size_t{1} << smaller.size(); ++corner) {
    auto sizes = smaller;
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = size_at_corner(smaller[i], i, corner);
    corners.push_back(trace(sizes));
  }
  return corners;
}

Graph Recording::merge(const std::vector<TraceAt>& corners) const {
  Graph graph;
  graph.device = example_[0].value().device().type();
  graph.calls = merge_traces(corners, sizes_.smaller(), sizes_.names());
  graph.weights = weights_;
  graph.values = corners.front().trace.values;
  for (const auto& constant : corners.front().trace.constants) {
    const auto number = graph.weights.size() - weights_.size();
    auto& named = graph.weights.emplace_back(constant);
    named.name = "constants." + std::to_string(number);
  }
  for (const auto& corner : corners) check(graph, corner);
  return graph;
}

void Recording::check(const Graph& graph, const TraceAt& other) const {
  const auto calls = difference(graph.calls, other, sizes_.names());
  TORCH_CHECK(calls.empty(), record_error_prefix, calls);
  const std::vector<Weight> constants(
      graph.weights.begin() + static_cast<std::ptrdiff_t>(weights_.size()), graph.weights.end());
  const auto reason = difference(constants, other.trace.constants);
  TORCH_CHECK(reason.empty(), record_error_prefix, reason);
}

// Returns the smallest value of a dynamic size for which the program and the function produce the
// same results.
int64_t Recording::smallest(const PreparedProgram& program, size_t size) const {
  auto sizes = sizes_.smaller();
  sizes[size] = 1;
  const auto inputs = sizes_.inputs(example_, sizes);
  try {
    return first_difference(program.run(inputs), run(inputs)).has_value() ? 2 : 1;
  } catch (const std::exception&) {
    return 2;
  }
}

void Recording::set_ports(Graph& graph, const std::vector<TraceAt>& corners) const {
  std::set<std::string> names;
  for (size_t i = 0; i < example_.size(); ++i) {
    const auto& input = example_[i].value();
    graph.inputs.push_back({example_[i].key(), i, input.scalar_type(), sizes_.shape(i, input)});
    names.insert(example_[i].key());
  }
  const auto& outputs = corners.front().trace.outputs;
  TORCH_CHECK(options_.output_names.empty() || options_.output_names.size() == outputs.size(),
              record_error_prefix, "output_names: expected ", outputs.size(), " names, got ",
              options_.output_names.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto standard = outputs.size() == 1 ? "output" : "output_" + std::to_string(i);
    const auto& name = options_.output_names.empty() ? standard : options_.output_names[i];
    check_name(name, "outputs");
    TORCH_CHECK(names.insert(name).second, record_error_prefix,
                "output_names: expected unique names, got '", name,
                "' twice; output names must also differ from input names");
    auto& port = graph.outputs.emplace_back(Port{name, outputs[i].value, outputs[i].dtype, {}});
    for (size_t dim = 0; dim < outputs[i].shape.size(); ++dim) {
      std::vector<int64_t> at_corners;
      for (const auto& corner : corners) {
        at_corners.push_back(corner.trace.outputs[i].shape.at(dim));
      }
      port.shape.push_back(size_through(std::move(at_corners), sizes_.smaller()));
    }
  }
}

void Recording::check_shapes(const Graph& graph, const TraceAt& other) const {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    std::vector<int64_t> shape;
    for (const auto& size : graph.outputs[i].shape) shape.push_back(size.at(other.sizes));
    const auto& found = other.trace.outputs[i].shape;
    TORCH_CHECK(
        shape == found, record_error_prefix, "output '", graph.outputs[i].name,
        "': expected sizes that are multilinear polynomials in the dynamic sizes with integer "
        "coefficients, and therefore the shape ",
        repr(c10::IntArrayRef(shape)), " at ", at_text(other.sizes, sizes_.names()), ", got ",
        repr(c10::IntArrayRef(found)), "; make the dimension static, or pool it to a fixed size");
  }
}

// Compares the program with the function for inputs that were not recorded. This comparison also
// detects values that the function read without going through the dispatcher.
void Recording::compare_outputs(const PreparedProgram& program) const {
  auto inputs = sizes_.inputs(example_, sizes_.farther());
  for (auto& input : inputs) {
    if (input.is_floating_point()) input = input * 0.75;
  }
  const auto differs = first_difference(program.run(inputs), run(inputs));
  TORCH_CHECK(!differs, record_error_prefix, "output '",
              program.outputs()[differs.value_or(0)].name,
              "': expected the program to match the function for other inputs, got different "
              "values; the function depends on values that cannot be recorded, such as elements "
              "read on the host or state kept between calls");
}

void Recording::add_example(Graph& graph) const {
  Tensors inputs;
  for (const auto& item : example_) inputs.push_back(item.value().detach().clone());
  graph.example_outputs = run(inputs);
  for (const auto& item : example_) graph.example_inputs.push_back(item.value().detach());
}

}  // namespace sconce::program::detail
