#include "sconce/data/detail/copy_stream.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace sconce::data::detail {

namespace {

torch::Device with_index(torch::Device device) {
  if (!device.is_cuda() || device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace

CopyStream::CopyStream(torch::Device device) : device_(with_index(device)) {
  if (!device.is_cuda()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device_);
}

CopyStream::Wait CopyStream::copy(const std::vector<torch::Tensor*>& tensors) const {
  if (!stream_) {
    for (auto* tensor : tensors) *tensor = tensor->to(device_);
    return {};
  }
  // Tensors that are already on the device were created on the current stream of the calling
  // thread, which may be a worker thread.
  const auto is_on_device = [this](const torch::Tensor* tensor) {
    return tensor->device() == device_;
  };
  if (std::any_of(tensors.begin(), tensors.end(), is_on_device)) {
    c10::Event made(device_.type());
    made.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    made.block(*stream_);
  }
  const c10::StreamGuard guard(*stream_);
  std::vector<torch::Tensor> batch;
  for (auto* tensor : tensors) {
    if (!is_on_device(tensor)) {
      const torch::Tensor from = tensor->is_cpu() ? tensor->pin_memory() : *tensor;
      *tensor = from.to(device_, /*non_blocking=*/true);
    }
    batch.push_back(*tensor);
  }
  auto event = std::make_shared<c10::Event>(device_.type());
  event->record(*stream_);
  return [batch = std::move(batch), event = std::move(event), device = device_] {
    const auto current = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    event->block(current);
    for (const auto& tensor : batch) tensor.record_stream(current);
  };
}

const CopyStream& CopyStreams::to(torch::Device device) {
  const torch::Device wanted = with_index(device);
  const std::scoped_lock lock(mutex_);
  return streams_.try_emplace(wanted.index(), wanted).first->second;
}

}  // namespace sconce::data::detail
