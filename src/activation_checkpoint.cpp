#include "sconce/activation_checkpoint.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <typeinfo>

#include "host_call.hpp"
#include "nn/keep_generator.hpp"
#include "sconce/amp/autocast.hpp"

namespace sconce::detail {

namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariable;
using torch::autograd::SavedVariableHooks;
using Tensors = CheckpointGuard::Tensors;

// Ends a second run of which nothing more is needed. It is no error, so nobody else should catch
// it.
struct EverythingIsSaved {};

// The state of autocast in this thread.
class AutocastState {
 public:
  // Autocast as it was, in the thread that calls.
  class Guard {
   public:
    explicit Guard(const AutocastState& state)
        : cpu_(c10::kCPU, state.cpu_), gpu_(c10::kCUDA, state.gpu_) {}

   private:
    amp::AutocastGuard cpu_;
    amp::AutocastGuard gpu_;
  };

 private:
  static amp::AutocastOptions of(c10::DeviceType type) {
    return {.dtype = at::autocast::get_autocast_dtype(type),
            .enabled = at::autocast::is_autocast_enabled(type),
            .cache_enabled = at::autocast::is_autocast_cache_enabled()};
  }

  amp::AutocastOptions cpu_ = of(c10::kCPU);
  amp::AutocastOptions gpu_ = of(c10::kCUDA);
};

// Returns whether the current stream of the device is being captured. LibTorch 2.11 tells it only
// by refusing to read the offset of the device's generator then.
template <class Guard = c10::impl::VirtualGuardImpl>
bool is_capturing(c10::Device device) {
  const Guard guard(device.type());
  if constexpr (requires(c10::Stream stream) { guard.isStreamCapturing(stream); }) {
    return guard.isStreamCapturing(guard.getStream(device));
  } else {
    const c10::DeviceGuard current(device);
    try {
      at::globalContext().defaultGenerator(device).get_offset();
      return false;
    } catch (const c10::Error&) {
      return true;
    }
  }
}

// States of the generators of the CPU and of the GPUs of some tensors.
class GeneratorStates {
 public:
  explicit GeneratorStates(const Tensors& tensors) {
    refuse_recording("a checkpoint that sets a generator back (preserve_rng_state)");
    add(c10::kCPU);
    for (const auto& tensor : tensors) {
      if (!tensor.defined() || !tensor.is_cuda()) continue;
      // A replay draws other numbers at each place of the graph, whatever the state was.
      TORCH_CHECK(!is_capturing(tensor.device()),
                  "sconce::checkpoint: expected preserve_rng_state = false during a capture, in "
                  "which a generator of a GPU cannot be set back; the function must draw nothing");
      add(tensor.device());
    }
  }

  // Restores the generators at its end, and begins with the states.
  class Guard {
   public:
    explicit Guard(const GeneratorStates& states) {
      for (auto [generator, state] : states.states_) {
        before_.emplace_back(generator);
        const std::scoped_lock lock(generator.mutex());
        generator.set_state(state);
      }
    }

   private:
    std::list<nn::KeepGenerator> before_;
  };

 private:
  void add(c10::Device device) {
    auto generator = at::globalContext().defaultGenerator(device);
    const auto has = [&generator](const auto& entry) { return entry.first == generator; };
    if (std::any_of(states_.begin(), states_.end(), has)) return;
    const std::scoped_lock lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }

  std::vector<std::pair<at::Generator, torch::Tensor>> states_;
};

}  // namespace

// One call of checkpoint: what its first run saved by kind, and what a second run saved again.
class CheckpointFrame {
 public:
  CheckpointFrame(const ActivationCheckpointOptions& options, const Tensors& inputs,
                  CheckpointGuard::Again again)
      : again_(std::move(again)) {
    if (options.preserve_rng_state) generators_.emplace(inputs);
    // In a function that is checkpointed itself, its hooks drop the inputs, too.
    for (const auto& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  // Adds a tensor of the first run. Returns its place.
  size_t add(const torch::Tensor& tensor) {
    const std::scoped_lock lock(mutex_);
    kinds_.push_back(tensor.options());
    shapes_.push_back(tensor.sizes().vec());
    return kinds_.size() - 1;
  }

  // Returns the tensor of that place for a backward pass, which takes each once.
  torch::Tensor take(size_t place);

  // Adds a tensor of a second run.
  void add_again(const torch::Tensor& tensor);

 private:
  void run_again();

  std::recursive_mutex mutex_;  // a backward pass on several devices has several threads
  CheckpointGuard::Again again_;
  std::vector<SavedVariable> inputs_;
  AutocastState autocast_;
  std::optional<GeneratorStates> generators_ = {};
  std::vector<at::TensorOptions> kinds_ = {};
  std::vector<std::vector<int64_t>> shapes_ = {};
  Tensors saved_ = {};      // by a second run; undefined where taken
  int backward_pass_ = -1;  // that the second run was for
};

namespace {

// What a thread's operations save goes to: the first run of a frame, or a second one.
struct Recording {
  std::shared_ptr<CheckpointFrame> frame;
  bool is_again = false;
};

// The innermost is the last. The inner ones end first.
thread_local std::vector<Recording> recordings;

struct RecordingGuard {
  explicit RecordingGuard(Recording recording) { recordings.push_back(std::move(recording)); }
  ~RecordingGuard() { recordings.pop_back(); }
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;
};

// In place of a tensor that is saved: in a first run, its place in the frame.
class SavedInFrame : public SavedVariableHooks {
 public:
  explicit SavedInFrame(std::shared_ptr<CheckpointFrame> frame) : frame_(std::move(frame)) {}
  void call_pack_hook(const torch::Tensor& tensor) override { place_ = frame_->add(tensor); }
  torch::Tensor call_unpack_hook() override { return frame_->take(place_); }

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  size_t place_ = 0;
};

// In a second run the tensor goes to the frame. It is kept here too, for a function that has a
// backward pass within itself.
class SavedAgain : public SavedVariableHooks {
 public:
  explicit SavedAgain(CheckpointFrame& frame) : frame_(frame) {}
  void call_pack_hook(const torch::Tensor& tensor) override {
    tensor_ = tensor.detach();
    frame_.add_again(tensor_);
  }
  torch::Tensor call_unpack_hook() override { return tensor_; }

 private:
  CheckpointFrame& frame_;  // which waits for the second run
  torch::Tensor tensor_;
};

// LibTorch's engine, which is asked for hooks wherever a tensor is saved. Only Python's knows
// hooks.
class HookedEngine : public Engine {
 public:
  ~HookedEngine() override { stop(); }
  static Engine& instance() {
    static HookedEngine engine;
    return engine;
  }

  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (recordings.empty()) return nullptr;
    const auto& [frame, is_again] = recordings.back();
    if (is_again) return std::make_unique<SavedAgain>(*frame);
    return std::make_unique<SavedInFrame>(frame);
  }
};

// Before main: a backward pass that has begun would end in another engine. An engine that is not
// LibTorch's own, such as that of a Python process, stays.
[[maybe_unused]] const bool is_hooked = [] {
  const Engine& engine = Engine::get_default_engine();
  const bool is_own = typeid(engine) == typeid(Engine);
  if (is_own) torch::autograd::set_default_engine_stub(&HookedEngine::instance);
  return is_own;
}();

}  // namespace

torch::Tensor CheckpointFrame::take(size_t place) {
  const std::scoped_lock lock(mutex_);
  const int now = torch::autograd::get_current_graph_task_id();
  if (backward_pass_ != now || saved_.size() <= place || !saved_[place].defined()) {
    backward_pass_ = now;
    run_again();
  }
  return std::exchange(saved_[place], torch::Tensor());
}

void CheckpointFrame::add_again(const torch::Tensor& tensor) {
  const size_t place = saved_.size();
  if (place == kinds_.size()) return;  // it comes after what the first run has saved so far
  const auto& kind = kinds_[place];
  TORCH_CHECK(tensor.sizes() == shapes_[place] && tensor.dtype() == kind.dtype() &&
                  tensor.device() == kind.device(),
              "sconce::checkpoint: expected the second run of the function to save what the first "
              "saved: tensor ",
              place + 1, " of shape ", at::IntArrayRef(shapes_[place]), ", ", kind.dtype(), " on ",
              kind.device(), ", got shape ", tensor.sizes(), ", ", tensor.dtype(), " on ",
              tensor.device());
  saved_.push_back(tensor);
  if (saved_.size() == kinds_.size()) throw EverythingIsSaved();
}

void CheckpointFrame::run_again() {
  Tensors inputs;
  for (const auto& input : inputs_) inputs.push_back(input.unpack());
  saved_.clear();
  std::optional<GeneratorStates::Guard> generators;
  if (generators_) generators.emplace(*generators_);
  const AutocastState::Guard autocast(autocast_);
  const at::AutoGradMode with_gradients(true);
  // The frame lives as long as what asked for a tensor.
  const RecordingGuard recording({.frame = {std::shared_ptr<void>(), this}, .is_again = true});
  try {
    again_(inputs);
  } catch (const EverythingIsSaved&) {
    return;
  }
  TORCH_CHECK(saved_.size() == kinds_.size(),
              "sconce::checkpoint: expected the second run of the function to save ", kinds_.size(),
              " tensors, as the first did, got ", saved_.size());
}

CheckpointGuard::CheckpointGuard(const ActivationCheckpointOptions& options, const Tensors& inputs,
                                 Again again) {
  const Engine& engine = Engine::get_default_engine();
  TORCH_CHECK(typeid(engine) == typeid(HookedEngine),
              "sconce::checkpoint: expected LibTorch's own autograd engine, got that of a Python "
              "process or of another library; use torch.utils.checkpoint there");
  frame_ = std::make_shared<CheckpointFrame>(options, inputs, std::move(again));
  recordings.push_back({.frame = frame_});
}

CheckpointGuard::~CheckpointGuard() {
  recordings.pop_back();
}

}  // namespace sconce::detail
