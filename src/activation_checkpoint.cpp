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

// Thrown to end a second run once it has recomputed all tensors that the frame needs. Because this
// type does not represent an error, no other code should catch it.
struct EverythingIsSaved {};

// Stores the autocast state of the thread that constructs it.
class AutocastState {
 public:
  // During the guard's lifetime, the calling thread uses the saved autocast state.
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

// Returns whether the device's current stream is being captured. LibTorch 2.11 exposes this state
// only indirectly: during a capture, reading the offset of the device's generator throws.
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

// Saves the generator states for the CPU and for each GPU that stores any of the given tensors.
class GeneratorStates {
 public:
  explicit GeneratorStates(const Tensors& tensors) {
    reject_recording("a checkpoint that restores a generator (preserve_rng_state)");
    add(c10::kCPU);
    for (const auto& tensor : tensors) {
      if (!tensor.defined() || !tensor.is_cuda()) continue;
      // During replays, each random operation in the graph draws new numbers, regardless of the
      // saved state.
      TORCH_CHECK(
          !is_capturing(tensor.device()),
          "sconce::checkpoint: expected preserve_rng_state = false during a capture, because a "
          "capture cannot restore a GPU's generator; the function must not draw random numbers");
      add(tensor.device());
    }
  }

  // Sets the generators to the saved states, and restores the previous states on destruction.
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

// Represents one call to `checkpoint`. Stores the properties of the tensors that the first run
// saved, and the tensors that a second run recomputed.
class CheckpointFrame {
 public:
  CheckpointFrame(const ActivationCheckpointOptions& options, const Tensors& inputs,
                  CheckpointGuard::Recompute recompute)
      : recompute_(std::move(recompute)) {
    if (options.preserve_rng_state) generators_.emplace(inputs);
    // If this call is nested inside another checkpointed function, the outer hooks also drop the
    // inputs.
    for (const auto& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  // Adds a tensor that the first run saved, and returns its index.
  size_t add(const torch::Tensor& tensor) {
    const std::scoped_lock lock(mutex_);
    kinds_.push_back(tensor.options());
    shapes_.push_back(tensor.sizes().vec());
    return kinds_.size() - 1;
  }

  // Returns the tensor at the given index. Each backward pass requests each tensor once.
  torch::Tensor take(size_t place);

  // Adds a tensor that was saved during a second run.
  void add_again(const torch::Tensor& tensor);

 private:
  void run_again();

  std::recursive_mutex mutex_;  // a backward pass on several devices uses several threads
  CheckpointGuard::Recompute recompute_;
  std::vector<SavedVariable> inputs_;
  AutocastState autocast_;
  std::optional<GeneratorStates> generators_ = {};
  std::vector<at::TensorOptions> kinds_ = {};
  std::vector<std::vector<int64_t>> shapes_ = {};
  Tensors saved_ = {};      // from a second run; undefined after `take`
  int backward_pass_ = -1;  // the pass that needed the second run
};

namespace {

// The active run, which records the tensors saved by operations in this thread. The active run is
// either a frame's first run or one of the frame's second runs.
struct Recording {
  std::shared_ptr<CheckpointFrame> frame;
  bool is_again = false;
};

// The last element is the innermost recording. Inner recordings end before outer recordings.
thread_local std::vector<Recording> recordings;

struct RecordingGuard {
  explicit RecordingGuard(Recording recording) { recordings.push_back(std::move(recording)); }
  ~RecordingGuard() { recordings.pop_back(); }
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;
};

// Adds each tensor saved by the first run to the frame, and stores only the tensor's index.
class SavedInFrame : public SavedVariableHooks {
 public:
  explicit SavedInFrame(std::shared_ptr<CheckpointFrame> frame) : frame_(std::move(frame)) {}
  void call_pack_hook(const torch::Tensor& tensor) override { place_ = frame_->add(tensor); }
  torch::Tensor call_unpack_hook() override { return frame_->take(place_); }

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  size_t place_ = 0;
};

// Passes each tensor saved by a second run to the frame. Also keeps a reference to the tensor, in
// case the function itself runs a backward pass.
class SavedAgain : public SavedVariableHooks {
 public:
  explicit SavedAgain(CheckpointFrame& frame) : frame_(frame) {}
  void call_pack_hook(const torch::Tensor& tensor) override {
    tensor_ = tensor.detach();
    frame_.add_again(tensor_);
  }
  torch::Tensor call_unpack_hook() override { return tensor_; }

 private:
  CheckpointFrame& frame_;  // waits for the second run
  torch::Tensor tensor_;
};

// Extends LibTorch's engine with support for saved-tensor hooks, which are otherwise supported only
// by Python's engine. Whenever LibTorch saves a tensor, it asks the engine for hooks.
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

// Runs before main. Otherwise, a backward pass could start in one engine and finish in another. An
// engine that does not belong to LibTorch itself, such as the engine in a Python process, is not
// replaced.
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
  if (place == kinds_.size()) return;  // the first run has not saved more tensors yet
  const auto& kind = kinds_[place];
  TORCH_CHECK(tensor.sizes() == shapes_[place] && tensor.dtype() == kind.dtype() &&
                  tensor.device() == kind.device(),
              "sconce::checkpoint: expected the second run of the function to save the same "
              "tensors as the first run: tensor ",
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
  // The caller, which requested a tensor, keeps the frame alive.
  const RecordingGuard recording({.frame = {std::shared_ptr<void>(), this}, .is_again = true});
  try {
    recompute_(inputs);
  } catch (const EverythingIsSaved&) {
    return;
  }
  TORCH_CHECK(saved_.size() == kinds_.size(),
              "sconce::checkpoint: expected the second run of the function to save ", kinds_.size(),
              " tensors (as in the first run), got ", saved_.size());
}

CheckpointGuard::CheckpointGuard(const ActivationCheckpointOptions& options, const Tensors& inputs,
                                 Recompute recompute) {
  const Engine& engine = Engine::get_default_engine();
  TORCH_CHECK(typeid(engine) == typeid(HookedEngine),
              "sconce::checkpoint: expected LibTorch's own autograd engine, got the engine of a "
              "Python process or of another library; use torch.utils.checkpoint there");
  frame_ = std::make_shared<CheckpointFrame>(options, inputs, std::move(recompute));
  recordings.push_back({.frame = frame_});
}

CheckpointGuard::~CheckpointGuard() {
  recordings.pop_back();
}

}  // namespace sconce::detail
