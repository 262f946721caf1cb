#pragma once

// Options and tensors of the optimizers' state dicts and archives, for the sources of this folder.

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <string>

namespace sconce::optim {

/// Returns the options with the optimizer's type of options.
/// @throw c10::Error if they have another type.
template <class T, class Base>
T& options_as(Base& options, const std::string& name) {
  T* typed = dynamic_cast<T*>(&options);
  TORCH_CHECK(typed != nullptr, name, ": expected every group to have this optimizer's options");
  return *typed;
}

/// Writes a tensor. Like LibTorch, leaves out an undefined one.
inline void write(torch::serialize::OutputArchive& archive, const char* key,
                  const at::Tensor& tensor) {
  if (tensor.defined()) archive.write(key, c10::IValue(tensor));
}

/// Reads a tensor that `write` wrote. If it is missing, the tensor becomes undefined.
inline void read(torch::serialize::InputArchive& archive, const char* key, at::Tensor& tensor) {
  c10::IValue value;
  tensor = archive.try_read(key, value) ? value.toTensor() : at::Tensor();
}

}  // namespace sconce::optim
