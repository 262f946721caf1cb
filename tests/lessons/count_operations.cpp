// Counts the work that a process requests from LibTorch. When the process exits, the counts are
// written as JSON to the file specified by SCONCE_COUNTS. If the process has a rank, the file name
// ends with the rank:
//   LD_PRELOAD=libcount-operations.so SCONCE_COUNTS=counts.json
//   build/default/bin/lessons/d2l_gpus/5_summary
// Python loads the library after torch, as in counted.py. Without SCONCE_COUNTS, nothing is
// counted.
//
// The library counts the operators that do a program's actual work, at any nesting depth. Counts of
// the operators that a program calls directly would not be comparable between C++ and Python,
// because torch::linear and Python's functional.linear reach aten::addmm through different calls.
// Calls made inside a counted operator are not counted, because these calls differ between devices.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using Call = at::RecordFunction;

class Counts {
 public:
  void add(const std::string& row, int64_t number = 1) {
    const std::lock_guard lock(mutex_);
    rows_[row] += number;
  }

  std::string json() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [row, number] : rows_) {
      text += (text.empty() ? "\"" : ",\n \"") + row + "\": " + std::to_string(number);
    }
    return "{" + text + "}\n";
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> rows_;
};

// The counts and the file name are never destroyed, because both are used until the process exits.
Counts& counts() {
  static auto& all = *new Counts;
  return all;
}

std::string& file_name() {
  static auto& name = *new std::string;
  return name;
}

std::optional<at::Tensor> input(const Call& call, size_t index) {
  if (index >= call.inputs().size() || !call.inputs()[index].isTensor()) return {};
  const at::Tensor tensor = call.inputs()[index].toTensor();
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

std::string shape_of(at::IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// A transposed matrix is reported as a transposed view, so the counts reveal swapped dimensions
// even if the two dimensions are equal.
std::string describe(const at::Tensor& operand) {
  const bool is_transposed =
      operand.dim() == 2 && operand.stride(0) == 1 && operand.size(0) > 1 && operand.size(1) > 1;
  return is_transposed ? shape_of(operand.t().sizes()) + ".t()" : shape_of(operand.sizes());
}

// Returns the position of the first operand of a product.
std::optional<size_t> position_of_operands(std::string_view name) {
  static const std::map<std::string_view, size_t> positions = {
      {"aten::mm", 0},      {"aten::bmm", 0},      {"aten::mv", 0},
      {"aten::dot", 0},     {"aten::addmm", 1},    {"aten::addmm_", 1},
      {"aten::addmv", 1},   {"aten::addmv_", 1},   {"aten::addbmm", 1},
      {"aten::baddbmm", 1}, {"aten::baddbmm_", 1}, {"aten::_addmm_activation", 1},
  };
  const auto found = positions.find(name);
  return found == positions.end() ? std::nullopt : std::optional(found->second);
}

void count_product(const Call& call, size_t position) {
  const auto left = input(call, position), right = input(call, position + 1);
  if (!left || !right) return;
  counts().add("product " + describe(*left) + " @ " + describe(*right));
  // Each row of the left operand is multiplied by each column of the right operand.
  const int64_t columns = right->dim() < 2 ? 1 : right->size(-1);
  counts().add("floating-point operations", 2 * left->numel() * columns);
}

// Returns the number of operations per output value of a convolution.
int64_t operations_per_value(const at::Tensor& weight) {
  return 2 * weight.numel() / weight.size(0);
}

// Returns the number of operations per output value.
int64_t count_convolution(const Call& call) {
  const auto images = input(call, 0), weight = input(call, 1);
  if (!images || !weight) return 0;
  counts().add("convolution " + shape_of(images->sizes()) + " with " + shape_of(weight->sizes()));
  return operations_per_value(*weight);
}

void count_convolution_backward(const Call& call) {
  const auto gradient = input(call, 0), images = input(call, 1), weight = input(call, 2);
  if (!gradient || !images || !weight) return;
  const auto wanted = call.inputs().back().toBoolList();
  counts().add("convolution's backward pass " + shape_of(images->sizes()) + " with " +
               shape_of(weight->sizes()));
  counts().add("floating-point operations",
               (wanted[0] + wanted[1]) * gradient->numel() * operations_per_value(*weight));
}

void count_copy(const Call& call) {
  const auto to = input(call, 0), from = input(call, 1);
  if (!to || !from || to->device() == from->device()) return;
  counts().add("copies from " + from->device().str() + " to " + to->device().str());
}

void count_sum(const Call& call) {
  const auto left = input(call, 0), right = input(call, 1);
  if (!left || !right || left->dim() == 0 || right->dim() == 0) return;
  counts().add("sum " + shape_of(left->sizes()) + " + " + shape_of(right->sizes()));
}

// Whether this thread is already inside a counted operator. Nested calls are not counted again.
thread_local bool in_work = false;

struct Work : at::ObserverContext {
  int64_t operations_per_value = 0;  // for an output that does not exist yet
};

std::unique_ptr<at::ObserverContext> begin(const Call& call) {
  const std::string_view name = call.name();
  if (name == "aten::_local_scalar_dense") counts().add("host reads");
  if (name == "aten::copy_") count_copy(call);
  // The number of gradient additions in a backward pass depends on which thread runs first. These
  // additions run with grad mode disabled and are not counted.
  if (name == "aten::add" && at::GradMode::is_enabled()) count_sum(call);
  const auto operands = position_of_operands(name);
  const bool is_convolution = name == "aten::convolution";
  const bool is_backward = name == "aten::convolution_backward";
  if (in_work || !(operands || is_convolution || is_backward)) return nullptr;
  auto work = std::make_unique<Work>();
  if (operands) count_product(call, *operands);
  if (is_convolution) work->operations_per_value = count_convolution(call);
  if (is_backward) count_convolution_backward(call);
  in_work = true;
  return work;
}

// The inputs are no longer available at this point.
void end(const Call& call, at::ObserverContext* context) {
  if (context == nullptr) return;
  in_work = false;
  const auto operations = static_cast<Work*>(context)->operations_per_value;
  if (operations == 0 || call.outputs().empty()) return;
  counts().add("floating-point operations", operations * call.outputs()[0].toTensor().numel());
}

}  // namespace

// Python calls this function, because processes forked by multiprocessing do not call exit
// handlers.
extern "C" void write_counts() {
  if (file_name().empty()) return;
  std::ofstream(std::exchange(file_name(), "")) << counts().json();
}

namespace {

// Child processes of this program are not counted, because SCONCE_COUNTS is removed from their
// environment.
[[maybe_unused]] const bool is_counting = [] {
  const char* file = std::getenv("SCONCE_COUNTS");
  if (file == nullptr) return false;
  const char* rank = std::getenv("RANK");
  file_name() = std::string(file) + (rank == nullptr ? "" : std::string(".") + rank);
  ::unsetenv("SCONCE_COUNTS");
  at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
  std::atexit(write_counts);
  return true;
}();

}  // namespace
