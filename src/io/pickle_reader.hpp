#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <string>
#include <string_view>

namespace sconce::io {

/// Reads what torch.save pickles of state dicts, by Python's pickle protocol 2: the operations that
/// its weights_only loader knows, but for those that make objects of classes. Nothing is called but
/// what a closed list names. `load` returns the storage of a key, whole and on the device where it
/// is to be; it is asked each time that the pickle names one. `who` begins the errors.
/// @throw c10::Error naming the byte.
c10::IValue read_pickle(std::string_view pickle,
                        const std::function<c10::Storage(const std::string& key)>& load,
                        const std::string& who);

}  // namespace sconce::io
