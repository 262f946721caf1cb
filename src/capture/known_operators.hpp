#pragma once

#include <string_view>

namespace sconce::detail {

/// What a recording must know of an operator and its schema does not tell.
enum class Trait {
  allocation,       ///< it makes memory without values
  cast,             ///< it copies a tensor to another type
  collective,       ///< it writes its tensors in place, together with other processes
  constant,         ///< it makes the same values each time
  fill,             ///< it writes every element of its tensor and reads none
  host_read,        ///< it returns a value to the host, and no tag says so
  reads_grad_mode,  ///< it computes something else where gradients are not enabled
  reads_lengths,  ///< its result has a shape that depends on a tensor's values, and no tag says so
  relocation,     ///< it gives a tensor other memory
  silent_write,   ///< it may write tensors that its schema does not name as written
  takes_count,    ///< its result has a shape that depends on values only if no count is given
  takes_indices,  ///< its result has a shape that depends on values only if an index is a mask
  unseen,         ///< it composes others, or computes on the host where the dispatcher sees none
  wrong_out_variant  ///< its variant for given memory is wrong on the CPU
};

/// Returns whether the operator, such as "aten::zeros", has the trait.
bool has_trait(std::string_view op, Trait trait);

}  // namespace sconce::detail
