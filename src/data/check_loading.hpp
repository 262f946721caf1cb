#pragma once

#include <c10/util/Exception.h>

namespace sconce::data {

// Throws if any of the given loader options is invalid. `caller` is the loader's name.
template <class Options>
void check_loading(const char* caller, const Options& options) {
  TORCH_CHECK(options.batch_size >= 1, caller, ": expected batch_size to be at least 1, got ",
              options.batch_size);
  TORCH_CHECK(options.num_workers >= 0, caller, ": expected num_workers to be at least 0, got ",
              options.num_workers);
  TORCH_CHECK(options.prefetch_factor >= 1, caller,
              ": expected prefetch_factor to be at least 1, got ", options.prefetch_factor);
}

}  // namespace sconce::data
