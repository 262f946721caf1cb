#pragma once

#include <string_view>

namespace sconce::detail {

/// Properties of an operator that a recording needs and that the schema does not contain.
enum class Trait {
  allocation,        ///< allocates memory without values
  cast,              ///< copies a tensor to another type
  collective,        ///< writes its tensors in place, together with other processes
  constant,          ///< produces the same values in every call
  fill,              ///< overwrites every element of its tensor without reading any
  host_read,         ///< returns a value to the host, although no tag says so
  reads_grad_mode,   ///< computes something different when gradients are disabled
  reads_lengths,     ///< the result's shape depends on a tensor's values, although no tag says so
  relocation,        ///< moves a tensor to different memory
  silent_write,      ///< may write tensors that its schema does not mark as written
  takes_count,       ///< the result's shape depends on values unless a count is passed
  takes_indices,     ///< the result's shape depends on values if an index is a mask
  unseen,            ///< calls other operators, or computes on the host unseen by the dispatcher
  wrong_out_variant  ///< its out variant is wrong on the CPU
};

/// Returns whether the operator, such as "aten::zeros", has the trait.
bool has_trait(std::string_view op, Trait trait);

}  // namespace sconce::detail
