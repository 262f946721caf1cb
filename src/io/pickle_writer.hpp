#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <string>
#include <vector>

namespace sconce::io {

/// A pickle and its storages.
struct Pickled {
  std::string text = {};
  std::vector<c10::Storage> storages = {};  ///< storages for the keys "0", "1"..., on any device
};

/// Writes a value using Python's pickle protocol 2, as torch.save does. LibTorch's Pickler does not
/// support types without a storage class, such as uint16, and would write a file that cannot be
/// loaded.
/// @throw c10::Error, with a message that starts with `error_prefix` and contains the path of the
/// value, if a value cannot be saved.
Pickled write_pickle(const c10::IValue& value, const std::string& error_prefix);

}  // namespace sconce::io
