#pragma once

#include <ATen/autocast_mode.h>

namespace sconce::amp {

/// Disables autocast's cast cache in this thread during its lifetime. A recording must see every
/// cast, and a replay must not use a cast cached by the recording.
class NoCastCache {
 public:
  NoCastCache() { at::autocast::set_autocast_cache_enabled(false); }
  ~NoCastCache() { at::autocast::set_autocast_cache_enabled(before_); }
  NoCastCache(const NoCastCache&) = delete;
  NoCastCache& operator=(const NoCastCache&) = delete;

 private:
  bool before_ = at::autocast::is_autocast_cache_enabled();
};

}  // namespace sconce::amp
