#include "training/train_step.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <typeindex>
#include <utility>
#include <vector>

#include "sconce/captured_step.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/optimizer.hpp"
#include "tensor_groups.hpp"
#include "to_device.hpp"
#include "training/trained_objects.hpp"

namespace sconce {

namespace {

// Returns the parameters in all groups. `Optimizer::parameters` returns only the parameters in the
// first group.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

// Converts the count to a divisor. For a count of 0, the divisor is 1, so that an empty sum stays
// 0.
torch::Tensor as_divisor(const torch::Tensor& count) {
  return count + (count == 0);
}

void multiply_gradients(const torch::optim::Optimizer& optimizer, const torch::Tensor& factor) {
  const at::NoGradGuard no_grad;
  TensorGroups groups;
  SeenTensors seen;
  for (const auto& parameter : parameters_of(optimizer)) {
    const auto& grad = parameter.grad();
    if (!grad.defined() || !seen.insert(grad.unsafeGetTensorImpl()).second) continue;
    add_to_group(groups, grad.is_sparse() ? grad._values() : grad);
  }
  for (const auto& group : groups) {
    at::_foreach_mul_(group, to_device(factor.to(at::kFloat), group.front().device()));
  }
}

// Weights the batches in a step by their counts. The total count is known only after the last
// forward pass in the step. Until the total count is known, a step with several batches divides the
// losses by an estimate based on the first batch's count. This estimate keeps gradients within
// float16's range. The gradients are corrected afterward.
class CountedBatches {
 public:
  explicit CountedBatches(const std::optional<distributed::ProcessGroup>& group) : group_(group) {}

  void begin() { unit_ = total_ = torch::Tensor(); }

  // Returns the weighted loss for the batch's backward pass.
  torch::Tensor weighted(const StepOutput& output, int64_t batches_in_step) {
    if (batches_in_step == 1) return output.loss / divisor(output.count);
    total_ = total_.defined() ? total_ + output.count : output.count;
    if (!unit_.defined()) unit_ = divisor(output.count) * batches_in_step;
    return output.loss / unit_;
  }

  // Corrects the gradients after all batches have been processed.
  void end(const torch::optim::Optimizer& optimizer) const {
    if (total_.defined()) multiply_gradients(optimizer, unit_ / divisor(total_));
  }

 private:
  // Returns the count averaged over all ranks, because DistributedDataParallel averages gradients.
  torch::Tensor divisor(const torch::Tensor& count) const {
    if (!group_ || group_->world_size() == 1) return as_divisor(count);
    const auto mean = count.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    group_->all_reduce(mean);
    return as_divisor(mean / group_->world_size());
  }

  std::optional<distributed::ProcessGroup> group_;
  torch::Tensor unit_ = {};   // the divisor for each of several batches
  torch::Tensor total_ = {};  // on this rank; undefined without counts
};

[[noreturn]] void refuse_optimizer(const torch::nn::Module& model,
                                   const torch::optim::Optimizer& optimizer) {
  std::set<const void*> model_parameters;
  for (const auto& parameter : model.parameters()) {
    model_parameters.insert(parameter.unsafeGetTensorImpl());
  }
  const auto all = parameters_of(optimizer);
  const auto common = std::count_if(all.begin(), all.end(), [&](const auto& parameter) {
    return model_parameters.contains(parameter.unsafeGetTensorImpl());
  });
  TORCH_CHECK(false, "sconce::Trainer: expected an optimizer for the parameters of ",
              c10::demangle(typeid(model).name()), ", got an optimizer for ", all.size(),
              " parameters (", common,
              " from the model), and no parameter has a gradient after the backward pass");
}

// The error from LibTorch mentions neither the Trainer nor the model.
void check_requires_grad(const torch::Tensor& loss, const torch::nn::Module& model) {
  if (loss.requires_grad()) return;
  const auto all = model.parameters();
  const auto trained = std::count_if(
      all.begin(), all.end(), [](const auto& parameter) { return parameter.requires_grad(); });
  TORCH_CHECK(false,
              "sconce::Trainer: expected the loss to depend on a parameter that requires a "
              "gradient, got a loss that depends on no such parameter; of the ",
              all.size(), " parameters of ", c10::demangle(typeid(model).name()), ", ", trained,
              " require a gradient");
}

class EagerStep final : public TrainStep {
 public:
  EagerStep(double clip, amp::MixedPrecision& precision, const detail::ModelSteps& model,
            torch::optim::Optimizer& optimizer)
      : clip_(clip),
        precision_(precision),
        model_(model),
        optimizer_(optimizer),
        counted_(model.group) {}

  void zero_grad() override {
    optim::zero_grad(optimizer_);
    counted_.begin();
    batches_ = 0;
  }

  StepOutput backward(AnyBatch batch, int64_t batches_in_step) override {
    StepOutput output = forward_and_backward(batch, batches_in_step);
    if (++batches_ == batches_in_step) counted_.end(optimizer_);
    return output;
  }

  StepOutput forward_and_backward(const AnyBatch& batch, int64_t batches_in_step) {
    StepOutput output;
    {
      RECORD_USER_SCOPE("forward");
      const auto autocast = precision_.autocast();
      output = model_.train(batch);
    }
    check_requires_grad(output.loss, model_.module);
    RECORD_USER_SCOPE("backward");
    precision_.scale(part_of_step(output, batches_in_step)).backward();
    output.loss = output.loss.detach();
    return output;
  }

  void update() override {
    RECORD_USER_SCOPE("optimizer");
    if (clip_ > 0) {
      precision_.unscale_(optimizer_);
      // Clips the gradients of the optimizer's parameters instead of all gradients in the model,
      // because the gradients of the other parameters are neither zeroed nor unscaled.
      nn::clip_grad_norm_(parameters_of(optimizer_), clip_);
    }
    precision_.step(optimizer_);
  }

  // Runs all parts of a step with a single batch.
  StepOutput whole(const AnyBatch& batch) {
    zero_grad();
    StepOutput output = forward_and_backward(batch, /*batches_in_step=*/1);
    check_gradients(model_.module, optimizer_);
    update();
    return output;
  }

  // Returns a non-owning pointer to the model.
  std::shared_ptr<torch::nn::Module> module() const {
    return {std::shared_ptr<void>(), &model_.module};
  }

  TrainedObjects objects() const {
    return {model_.module, dynamic_cast<optim::Optimizer&>(optimizer_)};
  }

 private:
  torch::Tensor part_of_step(const StepOutput& output, int64_t batches_in_step) {
    if (output.count.defined()) return counted_.weighted(output, batches_in_step);
    return batches_in_step == 1 ? output.loss : output.loss / batches_in_step;
  }

  double clip_;
  amp::MixedPrecision& precision_;
  const detail::ModelSteps& model_;
  torch::optim::Optimizer& optimizer_;
  CountedBatches counted_;
  int64_t batches_ = 0;  // number of batches in the step so far
};

// The properties shared by all batches in a capture.
struct BatchKind {
  explicit BatchKind(const AnyBatch& batch) : type(batch.type()) {
    for (const auto& tensor : batch.tensors()) {
      is_whole = is_whole && tensor.defined();
      if (tensor.defined()) tensors.emplace_back(tensor.sizes().vec(), tensor.scalar_type());
    }
  }
  bool operator==(const BatchKind&) const = default;

  std::type_index type;
  bool is_whole = true;  // whether all tensors are defined
  std::vector<std::pair<std::vector<int64_t>, torch::ScalarType>> tensors = {};
};

// Returns the function to capture, which maps the tensors in a batch to the tensors in the step's
// output. The function stores the input tensors in a copy of the first batch, so that the
// non-tensor fields are preserved. The function stores the step's output in `names` to preserve the
// value names.
CapturedStep::Step captured_function(const std::function<StepOutput(const AnyBatch&)>& step,
                                     AnyBatch first, StepOutput& names) {
  const auto batch = std::make_shared<AnyBatch>(std::move(first));
  return [step, batch, &names](const CapturedStep::Tensors& tensors) {
    batch->set_tensors(tensors);
    names = step(*batch);
    CapturedStep::Tensors outputs;
    nn::for_each_tensor(names, [&](torch::Tensor& tensor) {
      outputs.push_back(std::exchange(tensor, torch::Tensor()));
    });
    return outputs;
  };
}

class GraphStep final : public TrainStep {
 public:
  GraphStep(const EagerStep& step, const TrainerOptions& options)
      : step_(step), device_(options.device.value()), compiler_(options.compiler) {}

  // Prepares this step for a new loop. The objects that the previous loop used may no longer exist.
  void use_for(const EagerStep& step) {
    step_.emplace(step);
    is_first_ = true;
  }

  void zero_grad() override {}

  StepOutput backward(AnyBatch batch, int64_t /*batches_in_step*/) override {
    const BatchKind kind(batch);
    // The capture itself rejects undefined tensors and reports their positions.
    const bool is_other = !is_first_ && kind.is_whole && kind != kind_;
    if (is_other) return step_->whole(batch);
    const auto tensors = batch.tensors();
    if (is_first_) begin(kind, std::move(batch));
    const auto outputs = (*captured_)(tensors);
    StepOutput output = names_;
    auto next = outputs.begin();
    nn::for_each_tensor(output, [&](torch::Tensor& tensor) { tensor = *next++; });
    // Copies the loss, because a caller may read the loss after the next replay has overwritten the
    // outputs.
    output.loss = output.loss.clone();
    return output;
  }

  void update() override {}

  std::string mode() const override {
    if (!captured_) return {};
    const StepMode form = captured_->mode();
    if (compiler_ == nullptr) {
      return form == StepMode::replayed ? "replayed" : "not replayed until the capture is complete";
    }
    const bool is_compiled = form == StepMode::compiled;
    return (is_compiled ? "compiled, because " : "not compiled, because ") +
           captured_->mode_reason();
  }

 private:
  // The first batch in a loop determines the captured shape. When the first batch arrives, the
  // modules are already in the correct mode.
  void begin(const BatchKind& kind, AnyBatch first) {
    is_first_ = false;
    TrainedObjects objects = step_->objects();
    if (captured_ && kind == kind_ && objects.are(*objects_)) return;
    kind_ = kind;
    objects_ = std::move(objects);
    const auto step = [this](const AnyBatch& batch) { return step_->whole(batch); };
    captured_.emplace(device_, captured_function(step, std::move(first), names_),
                      CapturedStepOptions{.modules = {step_->module()}, .compiler = compiler_});
  }

  std::optional<EagerStep> step_;
  torch::Device device_;
  std::shared_ptr<StepCompiler> compiler_;
  bool is_first_ = true;  // whether the loop has not run a batch yet
  std::optional<BatchKind> kind_ = {};
  std::optional<TrainedObjects> objects_ = {};
  StepOutput names_ = {};  // output without tensors that keeps the names of the captured values
  std::optional<CapturedStep> captured_ = {};
};

}  // namespace

std::shared_ptr<TrainStep> make_train_step(const TrainerOptions& options,
                                           amp::MixedPrecision& precision,
                                           const detail::ModelSteps& model,
                                           torch::optim::Optimizer& optimizer,
                                           const std::shared_ptr<TrainStep>& earlier) {
  const EagerStep step(options.gradient_clip_val, precision, model, optimizer);
  if (!options.graph) return std::make_shared<EagerStep>(step);
  const auto device = options.device.value();
  const char* const option = capturing_option(options);
  const auto* ours = dynamic_cast<optim::Optimizer*>(&optimizer);
  TORCH_CHECK(ours != nullptr, "sconce::Trainer: expected a sconce optimizer with ", option,
              " (only sconce optimizer steps can be replayed), got a different optimizer");
  TORCH_CHECK(!model.train_takes_index, "sconce::Trainer: expected training_step(batch) with ",
              option, ", got a training_step with batch_idx, which a replay would not update");
  TORCH_CHECK(ours->is_capturable(), "sconce::Trainer: expected a sconce optimizer with ", option,
              ", the fastest kernels, and a learning rate stored in a tensor on ", device,
              " (ExtraOptions::lr), got a different optimizer");
  TORCH_CHECK(
      !precision.scaler().is_enabled() || ours->step_supports_amp_scaling(),
      "sconce::Trainer: expected an optimizer with fused kernels for ", option,
      " and fp16 (fused kernels skip overflows without the host), got a different optimizer");
  auto* graph = dynamic_cast<GraphStep*>(earlier.get());
  if (graph == nullptr) return std::make_shared<GraphStep>(step, options);
  graph->use_for(step);
  return earlier;
}

torch::Tensor mean_loss(const StepOutput& step) {
  return step.count.defined() ? step.loss / as_divisor(step.count) : step.loss;
}

const char* capturing_option(const TrainerOptions& options) {
  return options.compiler != nullptr ? "compiler" : "graph";
}

void check_gradients(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) return;
    }
  }
  refuse_optimizer(model, optimizer);
}

}  // namespace sconce
