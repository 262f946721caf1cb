#include "sconce/data/detail/batch_reader.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

#include "sconce/data/seed.hpp"

namespace sconce::data::detail {

std::vector<int64_t> EpochItems::of(int64_t batch) const {
  const int64_t start = batch * batch_size;
  std::vector<int64_t> indices(static_cast<size_t>(std::min(batch_size, items - start)));
  if (order.defined()) {
    std::copy_n(order.const_data_ptr<int64_t>() + start, indices.size(), indices.begin());
  } else {
    std::iota(indices.begin(), indices.end(), start);
  }
  return indices;
}

at::Generator item_generator(const EpochItems& epoch, int64_t item) {
  const auto seed = mix_seeds(epoch.seed, epoch.epoch, static_cast<uint64_t>(item));
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::exception_ptr error_of_item(int64_t item) {
  try {
    throw;
  } catch (c10::Error& error) {
    error.add_context(c10::str("sconce::data::Loader: in item ", item));
  } catch (...) {  // has no text that could be added to
  }
  return std::current_exception();
}

}  // namespace sconce::data::detail
