#include "capture/known_operators.hpp"

#include <set>
#include <utility>

namespace sconce::detail {

bool has_trait(std::string_view op, Trait trait) {
  static const std::set<std::pair<std::string_view, Trait>> traits = {
      {"aten::_pack_padded_sequence", Trait::reads_lengths},
      {"aten::_pad_packed_sequence", Trait::reads_lengths},
      {"aten::_resize_output_", Trait::relocation},
      {"aten::_to_copy", Trait::cast},
      {"aten::batch_norm_update_stats", Trait::silent_write},
      {"aten::bernoulli_", Trait::fill},
      {"aten::cauchy_", Trait::fill},
      {"aten::copy_", Trait::fill},
      {"aten::empty", Trait::allocation},
      {"aten::empty_like", Trait::allocation},
      {"aten::empty_strided", Trait::allocation},
      {"aten::exponential_", Trait::fill},
      {"aten::fill_", Trait::fill},
      {"aten::full", Trait::constant},
      {"aten::full_like", Trait::constant},
      {"aten::geometric_", Trait::fill},
      {"aten::index", Trait::takes_indices},
      {"aten::is_nonzero", Trait::host_read},
      {"aten::log_normal_", Trait::fill},
      {"aten::max_pool1d", Trait::unseen},
      {"aten::mkldnn_rnn_layer", Trait::reads_grad_mode},
      {"aten::native_batch_norm", Trait::silent_write},
      {"aten::native_batch_norm", Trait::wrong_out_variant},  // assumes a contiguous input
      {"aten::new_empty", Trait::allocation},
      {"aten::new_empty_strided", Trait::allocation},
      {"aten::normal_", Trait::fill},
      {"aten::ones", Trait::constant},
      {"aten::ones_like", Trait::constant},
      {"aten::one_hot", Trait::takes_count},
      {"aten::random_", Trait::fill},
      {"aten::repeat_interleave", Trait::reads_lengths},
      {"aten::repeat_interleave", Trait::takes_count},
      {"aten::resize_", Trait::relocation},
      {"aten::resize_as_", Trait::relocation},
      {"aten::resize_as_sparse_", Trait::relocation},
      {"aten::rrelu_with_noise", Trait::silent_write},
      {"aten::scalar_tensor", Trait::constant},
      {"aten::set_", Trait::relocation},
      {"aten::set_data", Trait::relocation},
      {"aten::sparse_resize_", Trait::relocation},
      {"aten::sparse_resize_and_clear_", Trait::relocation},
      {"aten::uniform_", Trait::fill},
      {"aten::zero_", Trait::fill},
      {"aten::zeros", Trait::constant},
      {"aten::zeros_like", Trait::constant},
      {"c10d::allreduce_", Trait::collective},
      {"c10d::broadcast_", Trait::collective}};
  return traits.contains({op, trait});
}

}  // namespace sconce::detail
