#include "sconce/distributed/process_group.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tuple>
#include <utility>

#include "distributed/agree_backend.hpp"
#include "distributed/gather_bytes.hpp"
#include "distributed/gloo.hpp"
#include "distributed/launch.hpp"
#include "distributed/nccl.hpp"
#include "distributed/rendezvous.hpp"

namespace sconce::distributed {

struct ProcessGroup::Core {
  Launch launch = {};
  Milliseconds timeout = InitOptions().timeout;
  std::string backend = {};
  bool on_cpu = false;                                // whether gloo was requested
  c10::intrusive_ptr<c10d::ProcessGroup> group = {};  // null without a backend
  std::shared_ptr<const Core> parent = {};            // owns the store used by a subgroup
  mutable int subgroups = 0;
};

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

void check_backend(const std::string& named) {
  const bool is_known =
      named.empty() || named == "gloo" || named == "nccl" || named == both_backends;
  TORCH_CHECK(is_known, detail::init_name, "expected backend gloo, nccl, or ", both_backends,
              ", got '", named, "'");
  TORCH_CHECK(named.empty() || named == "gloo" || is_nccl_available(), detail::init_name,
              "expected backend gloo (sconce was built without NCCL), got '", named, "'");
}

// Returns a unique store prefix for each group that this process joins. Single-process groups are
// not counted. The prefix includes the restart count, because torchrun's agent keeps its store
// across restarts.
std::string next_prefix(const Launch& launch) {
  static std::atomic<int> groups = 0;
  if (launch.world_size == 1) return "sconce/alone";
  return "sconce/" + detail::variable("TORCHELASTIC_RESTART_COUNT").value_or("0") + "/" +
         std::to_string(groups++);
}

Group make_group(const Store& store, const Launch& launch, const std::string& backend,
                 Milliseconds timeout) {
  using Type = c10d::ProcessGroup::BackendType;
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, launch.rank, launch.world_size);
  if (backend != "nccl") {
    const auto gloo = make_gloo(store, launch, timeout);
    group->setBackend(c10::kCPU, Type::GLOO, gloo);
    group->setDefaultBackend(Type::GLOO);
    if (backend == "gloo") group->setBackend(c10::kCUDA, Type::GLOO, gloo);
  }
  if (backend != "gloo") {
    const auto own = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
    group->setBackend(c10::kCUDA, Type::NCCL,
                      make_nccl(own, launch.rank, launch.world_size, timeout));
    if (backend == "nccl") group->setDefaultBackend(Type::NCCL);
  }
  group->setGroupName("sconce");
  return group;
}

// If SIGPIPE is ignored, writing to a lost peer raises an error that identifies the peer.
// Otherwise, the write would terminate this process without a message. The Python interpreter also
// ignores SIGPIPE at startup.
void ignore_sigpipe() {
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

// Returns the group and its backend.
std::pair<Group, std::string> join(const Launch& launch, const std::string& named,
                                   Milliseconds timeout) {
  const std::string error_prefix = detail::init_name + std::string("rank ") +
                                   std::to_string(launch.rank) + " of " +
                                   std::to_string(launch.world_size) + ": ";
  ignore_sigpipe();
  const auto deadline = Clock::now() + timeout;
  const BackendOfRank own = {.named = named,
                             .gpu = gpu_uuid(device_of(launch.local_rank, num_gpus()))};
  const auto work = [=, prefix = next_prefix(launch)] {
    std::string backend;
    const Store store = naming(error_prefix, [&] {
      Store opened = c10::make_intrusive<c10d::PrefixStore>(prefix, open_store(launch, deadline));
      announce(*opened, launch.rank, "address", address_toward_rank_0(launch));
      backend = agree_backend(*opened, launch, own, deadline);
      opened->setTimeout(timeout);
      return opened;
    });
    return naming(error_prefix + "connecting to the other ranks failed: ", [&] {
      auto group = make_group(store, launch, backend, timeout);
      connect_all(*store, launch, deadline);
      return std::pair(group, backend);
    });
  };
  return run_with_timeout(timeout + std::chrono::seconds(1), error_prefix + "joining the group",
                          work);
}

void check_timeout(const char* function, Milliseconds timeout) {
  constexpr auto longest = std::chrono::hours(24 * 365);  // avoids overflow when added to a time
  TORCH_CHECK(timeout.count() > 0 && timeout <= longest, function,
              "expected a timeout above 0 and at most one year, got ", timeout.count(), " ms");
}

constexpr auto new_group_name = "sconce::distributed::ProcessGroup::new_group: ";

std::vector<int> checked_ranks(std::vector<int> ranks, int world_size) {
  TORCH_CHECK(!ranks.empty(), new_group_name, "expected at least one rank, got none");
  std::sort(ranks.begin(), ranks.end());
  TORCH_CHECK(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end(), new_group_name,
              "expected each rank once, got ", ranks);
  TORCH_CHECK(ranks.front() >= 0 && ranks.back() < world_size, new_group_name,
              "expected ranks from 0 to ", world_size - 1, ", got ", ranks);
  return ranks;
}

// Waits until all ranks of the larger group have called this function, and checks that they passed
// the same ranks.
void agree_ranks(c10d::Store& store, const Launch& launch, const std::vector<int>& ranks,
                 Clock::time_point deadline) {
  const std::string own = c10::str(ranks);
  announce(store, launch.rank, "joined", own);
  const auto all = ranks_from(0, launch);
  wait_for_ranks(store, all, "joined", deadline);
  for (const auto& text : announced_values(store, all, "joined")) {
    TORCH_CHECK(text == own, "expected the same list of ranks on every rank, got ", ranks, " and ",
                text);
  }
}

// Returns this process's launch settings for a subgroup. The settings keep the larger group's
// rendezvous address, because Gloo uses this address to choose an interface.
Launch launch_of(const Launch& larger, const std::vector<int>& ranks, int rank) {
  Launch launch = larger;
  launch.rank = rank;
  launch.world_size = static_cast<int>(ranks.size());
  launch.local_world_size = larger.is_on_one_machine() ? launch.world_size : 0;
  return launch;
}

// Gloo does not support computing a mean.
bool has_mean(const std::string& backend, const torch::Tensor& tensor) {
  return tensor.is_cuda() && backend != "gloo";
}

void divide(const torch::Tensor& sum, int ranks) {
  if (c10::isIntegralType(sum.scalar_type(), /*includeBool=*/false)) {
    sum.div_(ranks, "trunc");
  } else {
    sum.div_(ranks);
  }
}

c10d::ReduceOp reduce_op(ReduceOp op, bool with_mean) {
  switch (op) {
    case ReduceOp::sum:
      return c10d::ReduceOp::SUM;
    case ReduceOp::product:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::min:
      return c10d::ReduceOp::MIN;
    case ReduceOp::max:
      return c10d::ReduceOp::MAX;
    case ReduceOp::avg:
      return with_mean ? c10d::ReduceOp::AVG : c10d::ReduceOp::SUM;
  }
  TORCH_CHECK(false, "sconce::distributed::ReduceOp: expected sum, product, min, max, or avg");
}

// Runs an in-place collective on a tensor, which may be noncontiguous and may require gradients.
template <class Collective>
void in_place(const torch::Tensor& tensor, Collective&& collective) {
  const at::NoGradGuard no_grad;
  const auto values = tensor.detach();
  std::vector<torch::Tensor> dense = {values.contiguous()};
  collective(dense)->wait();
  if (!dense[0].is_same(values)) values.copy_(dense[0]);
}

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<const Core> core) : core_(std::move(core)) {}
ProcessGroup::ProcessGroup() : core_(std::make_shared<Core>()) {}

ProcessGroup ProcessGroup::init(const InitOptions& options) {
  check_timeout(detail::init_name, options.timeout);
  const Launch launch = read_launch(options);
  check_backend(options.backend);
  const bool alone = launch.world_size == 1;
  Core core{.launch = launch, .timeout = options.timeout, .on_cpu = options.backend == "gloo"};
  if (!alone || (!launch.launcher.empty() && !options.backend.empty())) {
    std::tie(core.group, core.backend) = join(launch, options.backend, options.timeout);
  }
  return ProcessGroup(std::make_shared<Core>(std::move(core)));
}

std::optional<ProcessGroup> ProcessGroup::new_group(std::vector<int> ranks,
                                                    std::optional<Milliseconds> timeout) const {
  ranks = checked_ranks(std::move(ranks), world_size());
  const Milliseconds limit = timeout.value_or(core_->timeout);
  check_timeout(new_group_name, limit);
  if (!core_->group) return *this;  // a group of one
  const auto found = std::find(ranks.begin(), ranks.end(), rank());
  const bool is_member = found != ranks.end();
  const Launch launch = launch_of(core_->launch, ranks, static_cast<int>(found - ranks.begin()));
  const std::string error_prefix =
      c10::str(new_group_name, "rank ", rank(), " of ", world_size(), ": ");
  const auto deadline = Clock::now() + limit;
  const auto work = [=, core = core_, number = core_->subgroups++] {
    return naming(error_prefix, [&] {
      const Store store = c10::make_intrusive<c10d::PrefixStore>(c10::str("group/", number),
                                                                 core->group->getStore());
      if (is_member) announce(*store, launch.rank, "address", address_toward_rank_0(launch));
      agree_ranks(*store, core->launch, ranks, deadline);
      const Group group = is_member ? make_group(store, launch, core->backend, limit) : Group();
      connect_all(*store, core->launch, deadline);
      return group;
    });
  };
  Core core{.launch = launch, .timeout = limit, .backend = core_->backend, .on_cpu = core_->on_cpu};
  core.group =
      run_with_timeout(limit + std::chrono::seconds(1), error_prefix + "making a group", work);
  core.parent = core_;
  if (!is_member) return std::nullopt;
  return ProcessGroup(std::make_shared<Core>(std::move(core)));
}

int ProcessGroup::rank() const {
  return core_->launch.rank;
}

int ProcessGroup::world_size() const {
  return core_->launch.world_size;
}

int ProcessGroup::local_rank() const {
  return core_->launch.local_rank;
}

torch::Device ProcessGroup::device() const {
  return device_of(local_rank(), core_->on_cpu ? 0 : num_gpus());
}

const std::string& ProcessGroup::backend() const {
  return core_->backend;
}

c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroup::c10d() const {
  return core_->group;
}

void ProcessGroup::all_reduce(const torch::Tensor& tensor, ReduceOp op) const {
  if (!core_->group) return;
  const bool with_mean = has_mean(backend(), tensor);
  in_place(tensor, [&](auto& tensors) {
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op(op, with_mean);
    return core_->group->allreduce(tensors, options);
  });
  if (op == ReduceOp::avg && !with_mean) divide(tensor.detach(), world_size());
}

void ProcessGroup::broadcast(const torch::Tensor& tensor, int src) const {
  TORCH_CHECK(src >= 0 && src < world_size(),
              "sconce::distributed::ProcessGroup::broadcast: expected src from 0 to ",
              world_size() - 1, ", got ", src);
  if (!core_->group) return;
  in_place(tensor, [&](auto& tensors) {
    c10d::BroadcastOptions options;
    options.rootRank = src;
    return core_->group->broadcast(tensors, options);
  });
}

std::vector<torch::Tensor> ProcessGroup::all_gather(const torch::Tensor& tensor) const {
  const at::NoGradGuard no_grad;
  std::vector<torch::Tensor> inputs = {tensor.detach().contiguous()};
  if (!core_->group) return {inputs[0].clone()};
  std::vector<std::vector<torch::Tensor>> outputs(1);
  for (int rank = 0; rank < world_size(); ++rank) outputs[0].push_back(at::empty_like(inputs[0]));
  core_->group->allgather(outputs, inputs)->wait();
  return outputs[0];
}

torch::Tensor ProcessGroup::reduce_scatter(const std::vector<torch::Tensor>& tensors,
                                           ReduceOp op) const {
  TORCH_CHECK(tensors.size() == static_cast<size_t>(world_size()),
              "sconce::distributed::ProcessGroup::reduce_scatter: expected ", world_size(),
              " tensors (one per rank), got ", tensors.size());
  const at::NoGradGuard no_grad;
  std::vector<std::vector<torch::Tensor>> inputs(1);
  for (const auto& tensor : tensors) inputs[0].push_back(tensor.detach().contiguous());
  if (!core_->group) return inputs[0][0].clone();
  std::vector<torch::Tensor> outputs = {at::empty_like(inputs[0][static_cast<size_t>(rank())])};
  const bool with_mean = has_mean(backend(), outputs[0]);
  c10d::ReduceScatterOptions options;
  options.reduceOp = reduce_op(op, with_mean);
  core_->group->reduce_scatter(outputs, inputs, options)->wait();
  if (op == ReduceOp::avg && !with_mean) divide(outputs[0], world_size());
  return outputs[0];
}

void ProcessGroup::barrier() const {
  if (!core_->group) return;
  const auto device = device_for(*this);
  c10d::BarrierOptions options;
  if (device.is_cuda()) options.device_ids = {device.index()};  // c10d would guess it from the rank
  core_->group->getBackend(device.type())->barrier(options)->wait();
}

}  // namespace sconce::distributed
