#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace train {

/// While an object of this class exists, tensors that this thread creates without specifying a
/// device are created on the meta device, where they have shapes but no memory. Python:
/// `with torch.device("meta"):`.
class MetaDevice {
 public:
  MetaDevice();

 private:
  c10::impl::IncludeDispatchKeyGuard included_;
};

}  // namespace train
