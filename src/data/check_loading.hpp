#pragma once

#include <c10/util/Exception.h>

namespace sconce::data {

// Throws unless the given options of the loader `caller` are valid.
template <class Options>
void check_loading(const char* caller, const Options& options) {
  TORCH_CHECK(options.batch_size >= 1, caller, ": expected a batch_size of 1 or more, got ",
              options.batch_size);
  TORCH_CHECK(options.num_workers >= 0, caller, ": expected num_workers of 0 or more, got ",
              options.num_workers);
  TORCH_CHECK(options.prefetch_factor >= 1, caller,
              ": expected a prefetch_factor of 1 or more, got ", options.prefetch_factor);
}

}  // namespace sconce::data
