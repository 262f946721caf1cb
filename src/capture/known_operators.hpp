#pragma once

#include <string_view>

namespace sconce::detail {

/// Properties of an operator that recordings need but schemas do not contain.
enum class Trait {
  allocation,        ///< allocates uninitialized memory
  cast,              ///< copies a tensor to another type
  collective,        ///< writes its tensors in place, together with other processes
  constant,          ///< produces the same values in every call
  fill,              ///< overwrites every element of its tensor without reading any
  host_read,         ///< returns a value to the host, although no tag says so
  reads_grad_mode,   ///< computes different results when gradients are disabled
  reads_lengths,     ///< the result's shape depends on values, although no tag says so
  relocation,        ///< moves a tensor to different memory
  silent_write,      ///< may write to tensors that its schema does not mark as written
  takes_count,       ///< the result's shape depends on values unless a count is passed
  takes_indices,     ///< the result's shape depends on values if an index is a mask
  unseen,            ///< calls other operators, or bypasses the dispatcher on the host
  wrong_out_variant  ///< the operator's out variant gives incorrect results on the CPU
};

/// Returns whether the operator, such as "aten::zeros", has the trait.
bool has_trait(std::string_view op, Trait trait);

}  // namespace sconce::detail
