#include "training/train_step.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sconce/captured_step.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/optimizer.hpp"

namespace sconce {

namespace {

// Returns the parameters of all groups. `Optimizer::parameters` returns only those of the first.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

[[noreturn]] void refuse_optimizer(const torch::nn::Module& model,
                                   const torch::optim::Optimizer& optimizer) {
  std::set<const void*> of_model;
  for (const auto& parameter : model.parameters()) {
    of_model.insert(parameter.unsafeGetTensorImpl());
  }
  const auto all = parameters_of(optimizer);
  const auto common = std::count_if(all.begin(), all.end(), [&](const auto& parameter) {
    return of_model.contains(parameter.unsafeGetTensorImpl());
  });
  TORCH_CHECK(false, "sconce::Trainer: expected an optimizer of the parameters of ",
              c10::demangle(typeid(model).name()), ", got one of ", all.size(),
              " parameters, of which ", common,
              " are the model's and none has a gradient after the backward pass");
}

class EagerStep final : public TrainStep {
 public:
  EagerStep(double clip, amp::MixedPrecision& precision, const detail::ModelSteps& model,
            torch::optim::Optimizer& optimizer)
      : clip_(clip), precision_(precision), model_(model), optimizer_(optimizer) {}

  void zero_grad() override { optim::zero_grad(optimizer_); }

  StepOutput backward(AnyBatch& batch, int64_t of_step) override {
    StepOutput output;
    {
      RECORD_USER_SCOPE("forward");
      const auto autocast = precision_.autocast();
      output = model_.train(batch);
    }
    RECORD_USER_SCOPE("backward");
    precision_.scale(of_step == 1 ? output.loss : output.loss / of_step).backward();
    output.loss = output.loss.detach();
    return output;
  }

  void update() override {
    RECORD_USER_SCOPE("optimizer");
    if (clip_ > 0) {
      precision_.unscale_(optimizer_);
      // The optimizer's parameters and not the model's: other gradients are not zeroed or unscaled.
      nn::clip_grad_norm_(parameters_of(optimizer_), clip_);
    }
    precision_.step(optimizer_);
  }

  // The parts of a step of one batch.
  StepOutput whole(AnyBatch& batch) {
    zero_grad();
    StepOutput output = backward(batch, /*of_step=*/1);
    check_gradients(model_.module, optimizer_);
    update();
    return output;
  }

 private:
  double clip_;
  amp::MixedPrecision& precision_;
  const detail::ModelSteps& model_;
  torch::optim::Optimizer& optimizer_;
};

class GraphStep final : public TrainStep {
 public:
  GraphStep(EagerStep step, torch::Device device)
      : step_(std::move(step)),
        captured_(device, [this](const std::vector<torch::Tensor>& tensors) {
          batch_->set_tensors(tensors);
          const StepOutput output = step_.whole(*batch_);
          return std::vector<torch::Tensor>{output.loss, output.output, output.target};
        }) {}

  void zero_grad() override {}

  // The next replay overwrites the outputs. The loss may be read after it.
  StepOutput backward(AnyBatch& batch, int64_t /*of_step*/) override {
    batch_ = &batch;
    const auto outputs = captured_(batch.tensors());
    return {outputs[0].clone(), outputs[1], outputs[2]};
  }

  void update() override {}

 private:
  EagerStep step_;
  AnyBatch* batch_ = nullptr;  // of the current step
  CapturedStep captured_;
};

}  // namespace

std::unique_ptr<TrainStep> make_train_step(const TrainerOptions& options,
                                           amp::MixedPrecision& precision,
                                           const detail::ModelSteps& model,
                                           torch::optim::Optimizer& optimizer) {
  const EagerStep step(options.gradient_clip_val, precision, model, optimizer);
  if (!options.graph) return std::make_unique<EagerStep>(step);
  const auto device = options.device.value();
  const auto* ours = dynamic_cast<optim::Optimizer*>(&optimizer);
  TORCH_CHECK(ours != nullptr,
              "sconce::Trainer: expected with graph one of sconce's optimizers, whose ",
              "step can be replayed, got another");
  TORCH_CHECK(ours->is_capturable(),
              "sconce::Trainer: expected with graph one of sconce's optimizers with fused kernels ",
              "and a learning rate that is a tensor on ", device,
              " (ExtraOptions::lr), got another");
  return std::make_unique<GraphStep>(step, device);
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
