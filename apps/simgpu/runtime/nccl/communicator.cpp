#include "simgpu/runtime/nccl/communicator.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace simgpu::nccl {

namespace {

int gpu_of_thread() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

}  // namespace

Communicator::Communicator(const ncclUniqueId& id, int ranks, int rank)
    : peers_(id, ranks, rank), device_(gpu_of_thread()), thread_([this] { work(); }) {}

Communicator::~Communicator() {
  if (error() != ncclSuccess) abort();
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

ncclResult_t Communicator::error() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? failure_->result : ncclSuccess;
}

void Communicator::check() const {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) throw Failure(ncclInvalidUsage, "the communicator was aborted");
  if (failure_) throw Failure(*failure_);
}

std::shared_future<void> Communicator::submit(const char* label, std::function<void(Peers&)> run) {
  check();
  Job job{label, std::move(run)};
  std::shared_future<void> done = job.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return done;
}

void Communicator::finish(const std::shared_future<void>& done) const {
  while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) check();
  check();
}

void Communicator::abort() {
  {
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
  }
  peers_.abort();
  changed_.notify_all();
}

ncclRedOp_t Communicator::create_premultiplied_sum(const void* factor, ncclDataType_t type,
                                                   ncclScalarResidence_t residence) {
  std::shared_ptr<const void> kept(factor, [](const void*) {});
  if (residence == ncclScalarHostImmediate) {
    const auto copy = std::make_shared<double>();
    std::memcpy(copy.get(), factor, size_of(type));
    kept = copy;
  }
  const std::lock_guard lock(mutex_);
  factors_[next_op_] = std::move(kept);
  return static_cast<ncclRedOp_t>(next_op_++);
}

void Communicator::destroy(ncclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  if (factors_.erase(op) == 0) throw Failure(ncclInvalidArgument, "no such reduction");
}

Reduction Communicator::reduction(ncclRedOp_t op) const {
  if (op >= ncclSum && op < ncclNumOps) return {op};
  const std::lock_guard lock(mutex_);
  const auto found = factors_.find(op);
  if (found == factors_.end()) throw Failure(ncclInvalidArgument, "no such reduction");
  return {ncclSum, found->second};
}

void Communicator::work() {
  while (auto job = next_job()) {
    run(*job);
    job->done.set_value();
  }
}

std::optional<Communicator::Job> Communicator::next_job() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_stopped_ || !jobs_.empty(); });
  if (jobs_.empty()) return std::nullopt;
  auto job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Communicator::run(Job& job) {
  try {
    peers_.check_aborted();
    job.run(peers_);
    peers_.begin(Activity::none, "");
  } catch (const Aborted&) {
  } catch (const Failure& failure) {
    peers_.end_wait();
    std::unique_lock lock(mutex_);
    std::string text = failure.what();
    if (failure.result == ncclRemoteError) text += std::string(" in ") + job.label;
    failure_.emplace(failure.result, text);
    fail(*failure_);
    changed_.wait(lock, [&] { return is_aborted_; });
  }
}

}  // namespace simgpu::nccl
