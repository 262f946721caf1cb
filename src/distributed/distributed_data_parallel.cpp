#include "sconce/distributed/distributed_data_parallel.hpp"

#include <torch/nn/modules/embedding.h>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <algorithm>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "capture_scope.hpp"
#include "distributed/gather_bytes.hpp"
#include "distributed/lone_checks.hpp"
#include "distributed/step_voting.hpp"
#include "distributed/together.hpp"
#include "host_call.hpp"
#include "sconce/nn/lazy.hpp"
#include "tensor_groups.hpp"

namespace sconce::nn {
namespace {

constexpr auto name = "sconce::nn::DistributedDataParallel";
constexpr size_t broadcast_bytes = size_t{250} * 1024 * 1024;  // per broadcast, as in Python

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// The parameters handled by the Reducer, without duplicates.
struct Parameters {
  std::vector<torch::Tensor> tensors;
  std::vector<bool> sparse;  // whether the gradient is sparse
  std::unordered_map<size_t, std::string> names;

  bool any_sparse() const { return std::find(sparse.begin(), sparse.end(), true) != sparse.end(); }
};

bool has_sparse_gradients(const torch::nn::Module& module) {
  if (const auto* embedding = module.as<torch::nn::Embedding>()) return embedding->options.sparse();
  if (const auto* bag = module.as<torch::nn::EmbeddingBag>()) return bag->options.sparse();
  return false;
}

Parameters parameters_of(const torch::nn::Module& root) {
  Parameters found;
  SeenTensors seen;
  for (const auto& module : root.named_modules()) {
    for (const auto& item : module.value()->named_parameters(/*recurse=*/false)) {
      const auto& tensor = item.value();
      if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
      const std::string path = module.key().empty() ? "" : module.key() + ".";
      found.names[found.tensors.size()] = path + item.key();
      found.sparse.push_back(has_sparse_gradients(*module.value()));
      found.tensors.push_back(tensor);
    }
  }
  return found;
}

void check(const torch::nn::Module& module, const Parameters& parameters,
           const distributed::ProcessGroup& group) {
  check_initialized(module, name);
  TORCH_CHECK(!parameters.tensors.empty(), name,
              ": expected a module with at least one parameter that requires grad, got none");
  const auto device = parameters.tensors.front().device();
  for (size_t i = 0; i < parameters.tensors.size(); ++i) {
    TORCH_CHECK(parameters.tensors[i].device() == device, name, ": expected all parameters on ",
                device, " (like the first parameter), got ", parameters.names.at(i), " on ",
                parameters.tensors[i].device());
  }
  TORCH_CHECK(group.backend() != "nccl" || device.is_cuda(), name,
              ": expected a module on a GPU for backend nccl, got a module on ", device);
}

// Returns one line for each tensor that must match on all ranks.
std::string description(const torch::nn::Module& module) {
  std::ostringstream lines;
  const auto add = [&](const char* kind, const auto& tensors) {
    for (const auto& item : tensors) {
      const auto& tensor = item.value();
      lines << kind << ' ' << item.key() << ' ' << tensor.scalar_type() << ' ' << tensor.sizes()
            << (tensor.requires_grad() ? "" : " without grad") << '\n';
    }
  };
  add("parameter", module.named_parameters());
  add("buffer", module.named_buffers());
  return lines.str();
}

std::string first_difference(const std::string& ours, const std::string& theirs) {
  std::istringstream left(ours), right(theirs);
  std::string first, second;
  do {
    if (!std::getline(left, first)) first = "nothing";
    if (!std::getline(right, second)) second = "nothing";
  } while (first == second);
  return first + ", rank 0 has " + second;
}

// Checks the module and returns its parameters. Either all ranks throw or none do.
Parameters check_everywhere(const torch::nn::Module* module, const distributed::ProcessGroup& group,
                            const DistributedDataParallelOptions& options) {
  Parameters parameters;
  std::string own;
  const auto hashes = distributed::together(group, name, [&] {
    TORCH_CHECK(module != nullptr, name, ": expected a module, got none");
    TORCH_CHECK(options.bucket_cap_mb.value_or(1) > 0, name,
                ": expected bucket_cap_mb to be above 0, got ", *options.bucket_cap_mb);
    parameters = parameters_of(*module);
    check(*module, parameters, group);
    own = description(*module);
    return std::vector<int64_t>{static_cast<int64_t>(std::hash<std::string>()(own) >> 1)};
  });
  const auto is_same = [&](const auto& hash) { return hash == hashes[0]; };
  if (std::all_of(hashes.begin(), hashes.end(), is_same)) return parameters;
  const auto texts = distributed::gather_texts(group, own);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    TORCH_CHECK(texts[rank] == texts[0], name, ": rank ", group.rank(), " of ", group.world_size(),
                ": comparing the modules failed: expected the same module on every rank, but rank ",
                rank, " has ", first_difference(texts[rank], texts[0]));
  }
  return parameters;
}

std::vector<torch::Tensor> detached(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach());
  return all;
}

// Writing to the returned tensors does not change the version counters of the originals. As in
// Python, the version counters must not change, because the backward pass of an earlier forward
// pass may still need the buffers from that forward pass.
std::vector<torch::Tensor> uncounted(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.variable_data());
  return all;
}

// Sums gradients in a narrower dtype. LibTorch's built-in hook supports only float16.
class Compress : public c10d::CppCommHookInterface<Group> {
 public:
  Compress(const Group& group, torch::ScalarType type) : CppCommHookInterface(group), type_(type) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const auto& buffer = bucket.getBuffer();
    if (sconce::detail::is_recording()) return run_and_wait(buffer);
    std::vector<torch::Tensor> small = {buffer.to(type_).div_(state_->getSize())};
    const auto decompress = [buffer, small](c10::ivalue::Future& sum) -> c10::IValue {
      sum.value();  // throws if the sum failed
      return torch::Tensor(buffer).copy_(small[0]);
    };
    return state_->allreduce(small)->getFuture()->then(decompress, c10::TensorType::get());
  }

 private:
  // A recording does not capture work on other threads, so the reduction is recorded as a single
  // host call.
  c10::intrusive_ptr<c10::ivalue::Future> run_and_wait(const torch::Tensor& buffer) const {
    sconce::detail::record_host_call([group = state_, type = type_, buffer] {
      std::vector<torch::Tensor> small = {buffer.to(type).div_(group->getSize())};
      group->allreduce(small)->wait();
      torch::Tensor(buffer).copy_(small[0]);
    });
    auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
    done->markCompleted(buffer);
    return done;
  }

  torch::ScalarType type_;
};

// Called when the backward pass reaches the module's output.
struct OnBackward : torch::CustomClassHolder {
  explicit OnBackward(std::function<void()> given) : call(std::move(given)) {}
  std::function<void()> call;
};

// Passes all outputs through a single autograd node. If the loss ignores an output, the backward
// pass still visits that output's parameters, but without a gradient. As a result, the Reducer
// knows that these parameters are ready.
struct Sink : torch::autograd::Function<Sink> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                at::TensorList outputs,
                                                const c10::intrusive_ptr<OnBackward>& on_backward) {
    context->set_materialize_grads(false);
    context->saved_data["on_backward"] = c10::IValue::make_capsule(on_backward);
    torch::autograd::variable_list copies;
    for (const auto& output : outputs) copies.push_back(output.clone());
    return copies;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["on_backward"].toCapsule();
    c10::static_intrusive_pointer_cast<OnBackward>(capsule)->call();
    gradients.emplace_back();  // gradient of on_backward
    return gradients;
  }
};

std::vector<size_t> bucket_limits(const DistributedDataParallelOptions& options, int64_t first,
                                  int64_t cap) {
  // One bucket is enough for the first step, because the Reducer rebuilds its buckets before the
  // second step. With find_unused_parameters and without static_graph, the Reducer never rebuilds
  // its buckets.
  if (options.static_graph || !options.find_unused_parameters) {
    return {static_cast<size_t>(std::numeric_limits<int64_t>::max())};
  }
  if (first < cap) return {static_cast<size_t>(first), static_cast<size_t>(cap)};
  return {static_cast<size_t>(cap)};
}

// Returns whether the Reducer of a single-process group does more than run its checks. Depending on
// the options, the Reducer rounds gradients to a narrower dtype, sums the rows of sparse gradients,
// searches for unused parameters, or learns a static graph.
bool needs_reducer(const Parameters& parameters, const DistributedDataParallelOptions& options) {
  return options.comm_hook != CommHook::none || options.find_unused_parameters ||
         options.static_graph || parameters.any_sparse();
}

// Returns the name of an option that a captured step on the CPU cannot replay, or null. With these
// options, the Reducer reads values on the host in each backward pass.
const char* not_replayed(const Parameters& parameters,
                         const DistributedDataParallelOptions& options) {
  if (!parameters.tensors.front().is_cpu()) return nullptr;
  if (options.find_unused_parameters) return "find_unused_parameters";
  if (options.static_graph) return "static_graph";
  return parameters.any_sparse() ? "sparse gradients" : nullptr;
}

std::shared_ptr<c10d::Reducer> make_reducer(const Parameters& parameters, const Group& group,
                                            const DistributedDataParallelOptions& options) {
  constexpr double mebibyte = 1024 * 1024;
  const auto cap = options.bucket_cap_mb ? static_cast<int64_t>(*options.bucket_cap_mb * mebibyte)
                                         : static_cast<int64_t>(c10d::kDefaultBucketBytesCap);
  const auto first = options.bucket_cap_mb ? cap : c10d::kDefaultFirstBucketBytes;
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters.tensors, bucket_limits(options, first, cap), parameters.sparse);
  std::reverse(buckets.begin(), buckets.end());  // approximates the order in which gradients arrive
  return std::make_shared<c10d::Reducer>(
      parameters.tensors, std::move(buckets), group, parameters.sparse, cap,
      options.find_unused_parameters, /*gradient_as_bucket_view=*/false, parameters.names, first,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>());
}

}  // namespace

namespace detail {

struct DistributedCore::Engine {
  std::shared_ptr<torch::nn::Module> module = {};
  Group group = {};
  DistributedDataParallelOptions options = {};
  bool has_buffers = false;
  const char* not_replayed = nullptr;  // an option that CPU captures cannot replay
  std::shared_ptr<c10d::Reducer> reducer = {};
  std::shared_ptr<c10d::Logger> logger = {};  // the Reducer stores only a weak pointer
  bool sync_buffers = true;
  bool sync_outside = true;  // whether to average gradients outside a recording
  distributed::StepVoting voting = {};
  std::shared_ptr<bool> graph_is_known = std::make_shared<bool>(false);  // for a static graph
  std::unique_ptr<LoneChecks> alone = {};  // replaces the Reducer in a group of one

  void synchronize_values() {
    auto tensors = detached(module->parameters());
    if (options.broadcast_buffers) {
      for (const auto& buffer : detached(module->buffers())) tensors.push_back(buffer);
    }
    c10d::broadcast_coalesced(group, tensors, broadcast_bytes);
  }

  void make(const Parameters& parameters) {
    reducer = make_reducer(parameters, group, options);
    logger = std::make_shared<c10d::Logger>(reducer);
    reducer->set_logger(logger);
    logger->set_construction_data_and_log(module->name(), /*device_ids=*/{}, /*output_device=*/-1,
                                          options.broadcast_buffers, /*has_sync_bn=*/false,
                                          options.static_graph);
    if (options.static_graph) {
      reducer->set_static_graph();
      logger->set_static_graph();
    }
    if (options.comm_hook == CommHook::none) return;
    const bool fp16 = options.comm_hook == CommHook::fp16_compress;
    reducer->register_comm_hook(
        std::make_unique<Compress>(group, fp16 ? torch::kHalf : torch::kBFloat16));
  }

  // Runs the collectives that precede a forward pass. Each replay of a captured step on the CPU
  // also runs these collectives, so they match the collectives of a rank that runs its step
  // eagerly.
  void begin_forward(const distributed::ProcessGroup& rank_group, bool grad, bool sync) {
    if (sync) voting.exchange(rank_group);
    if (grad) reducer->rebuild_buckets();
    const bool is_due = std::exchange(sync_buffers, sync);
    if (!is_due || !options.broadcast_buffers || !has_buffers) return;
    const torch::NoGradGuard no_grad;
    c10d::broadcast_coalesced(group, uncounted(module->buffers()), broadcast_bytes);
  }

  void prepare_for_backward(const std::vector<torch::Tensor*>& outputs) const {
    std::vector<torch::Tensor> tensors;
    if (options.find_unused_parameters && !options.static_graph) {
      TORCH_CHECK(!outputs.empty(), name,
                  "::forward: expected an output that contains tensors (find_unused_parameters "
                  "requires them), got an output without tensors");
      for (const auto* output : outputs) {
        if (output->defined()) tensors.push_back(*output);
      }
    }
    reducer->prepare_for_backward(tensors);
  }

  // Returns whether the backward pass must visit all outputs before any other node in the module.
  bool needs_sink() const {
    return options.static_graph ? !*graph_is_known : options.find_unused_parameters;
  }

  void pass_through_sink(const std::vector<torch::Tensor*>& outputs) const {
    std::vector<torch::Tensor*> with_graph;
    std::vector<torch::Tensor> tensors;
    for (auto* output : outputs) {
      if (!output->defined() || !output->grad_fn()) continue;
      with_graph.push_back(output);
      tensors.push_back(*output);
    }
    if (tensors.empty()) return;
    const auto copies = Sink::apply(at::TensorList(tensors), on_backward());
    for (size_t i = 0; i < copies.size(); ++i) *with_graph[i] = copies[i];
  }

  // With a static graph, the first backward pass is only recorded, and all gradients are sent when
  // the pass ends.
  c10::intrusive_ptr<OnBackward> on_backward() const {
    if (!options.static_graph) return c10::make_intrusive<OnBackward>([] {});
    return c10::make_intrusive<OnBackward>([reducer = reducer, known = graph_is_known] {
      if (std::exchange(*known, true)) return;
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer] { reducer->delay_all_reduce(); });
    });
  }
};

DistributedCore::DistributedCore(std::shared_ptr<torch::nn::Module> module,
                                 const distributed::ProcessGroup& group,
                                 const DistributedDataParallelOptions& options)
    : group_(group), broadcast_buffers_(options.broadcast_buffers) {
  const auto parameters = check_everywhere(module.get(), group, options);
  if (!group.c10d()) return;
  if (group.world_size() == 1 && !needs_reducer(parameters, options)) {
    engine_ = std::make_shared<Engine>();
    engine_->alone = std::make_unique<LoneChecks>(name, parameters.tensors, parameters.names);
    return;
  }
  const torch::NoGradGuard no_grad;
  const bool has_buffers = !module->buffers().empty();
  engine_ = std::make_shared<Engine>(Engine{.module = std::move(module),
                                            .group = group.c10d(),
                                            .options = options,
                                            .has_buffers = has_buffers,
                                            .not_replayed = not_replayed(parameters, options)});
  engine_->synchronize_values();
  engine_->make(parameters);
}

DistributedCore::~DistributedCore() = default;

void DistributedCore::before_forward() {
  if (!engine_) return;
  auto& engine = *engine_;
  if (engine.alone) {
    if (torch::GradMode::is_enabled()) engine.alone->check_finished();
    return;
  }
  using sconce::detail::CaptureScope;
  const bool grad = torch::GradMode::is_enabled();
  const bool sync = grad && sync_;
  TORCH_CHECK(
      !sync || engine.not_replayed == nullptr || !CaptureScope::is_active(), name,
      ": expected no find_unused_parameters, static_graph, or sparse gradients in a captured "
      "step on the CPU, got ",
      engine.not_replayed);
  if (sync) engine.reducer->prepare_for_forward();
  const std::weak_ptr<Engine> weak = engine_;
  sconce::detail::depend_on(&engine, [weak, sync_outside = engine.sync_outside] {
    const auto now = weak.lock();
    return now != nullptr && now->sync_outside == sync_outside;
  });
  sconce::detail::run_and_record(
      [weak, group = group_, ballot = CaptureScope::ballot(), grad, sync] {
        const auto now = weak.lock();
        if (ballot && grad && group.world_size() > 1) now->voting.use(ballot);
        now->begin_forward(group, grad, sync);
      });
}

// A guard that is used inside a step during recording becomes part of that step.
bool DistributedCore::exchange_sync(bool sync) {
  if (engine_ && !sconce::detail::is_recording()) engine_->sync_outside = sync;
  return std::exchange(sync_, sync);
}

void DistributedCore::after_forward(const std::vector<torch::Tensor*>& outputs) {
  if (!engine_) return;
  const bool sync = torch::GradMode::is_enabled() && sync_;
  if (engine_->alone) {
    if (sync) engine_->alone->expect_gradients();
    return;
  }
  if (sync) engine_->prepare_for_backward(outputs);
  if (engine_->needs_sink()) engine_->pass_through_sink(outputs);
}

std::vector<int64_t> DistributedCore::bucket_sizes() const {
  return engine_ && engine_->logger ? engine_->logger->get_bucket_sizes() : std::vector<int64_t>();
}

}  // namespace detail
}  // namespace sconce::nn
