#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace train {

/// While an object of this class exists, this thread creates tensors on the meta device unless
/// another device is specified. Such tensors have shapes but no memory. Python:
/// `with torch.device("meta"):`.
class MetaDevice {
 public:
  MetaDevice();

 private:
  c10::impl::IncludeDispatchKeyGuard included_;
};

}  // namespace train
