#pragma once

// How the optimizers read what is in a state dict or an archive. For the sources of this room.

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <string>

namespace sconce::optim {

/// Returns the options as the type that the optimizer has.
template <class T, class Base>
T& options_as(Base& options, const std::string& name) {
  T* typed = dynamic_cast<T*>(&options);
  TORCH_CHECK(typed != nullptr, name, ": expected every group to have this optimizer's options");
  return *typed;
}

/// Writes a tensor as LibTorch's own states do: not at all if it is undefined.
inline void write(torch::serialize::OutputArchive& archive, const char* key,
                  const at::Tensor& tensor) {
  if (tensor.defined()) archive.write(key, c10::IValue(tensor));
}

/// Reads what `write` wrote; a tensor that was not written becomes undefined.
inline void read(torch::serialize::InputArchive& archive, const char* key, at::Tensor& tensor) {
  c10::IValue value;
  tensor = archive.try_read(key, value) ? value.toTensor() : at::Tensor();
}

}  // namespace sconce::optim
