#pragma once

#include <ATen/autocast_mode.h>

namespace sconce::amp {

/// Keeps autocast from caching casts in this thread while it lives. A recording must see each
/// cast, and a replay must not use one of the recording.
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
