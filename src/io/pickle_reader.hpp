#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <string>
#include <string_view>

namespace sconce::io {

/// Reads a pickle of a state dict written by torch.save, in Python's pickle protocol 2. Supports
/// the operations of torch.load with weights_only, except those that make objects of classes. Calls
/// only functions on a closed list. `load` returns the whole storage of a key, on its final device;
/// it is called each time the pickle names a storage. `who` begins the errors.
/// @throw c10::Error naming the byte.
c10::IValue read_pickle(std::string_view pickle,
                        const std::function<c10::Storage(const std::string& key)>& load,
                        const std::string& who);

}  // namespace sconce::io
