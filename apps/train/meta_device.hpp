#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace train {

/// While it lives, tensors that this thread makes without naming a device are on the meta device:
/// they have shapes and no memory. Python: `with torch.device("meta"):`.
class MetaDevice {
 public:
  MetaDevice();

 private:
  c10::impl::IncludeDispatchKeyGuard included_;
};

}  // namespace train
