#include "sconce/data/detail/batch_reader.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>

#include "sconce/data/seed.hpp"

namespace sconce::data::detail {

at::Generator item_generator(const EpochItems& epoch, int64_t item) {
  const auto seed = mix_seeds(epoch.seed, epoch.epoch, static_cast<uint64_t>(item));
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::exception_ptr error_of_item(int64_t item) {
  try {
    throw;
  } catch (c10::Error& error) {
    error.add_context(c10::str("sconce::data::DataLoader: in item ", item));
  } catch (...) {  // there is no message to extend
  }
  return std::current_exception();
}

}  // namespace sconce::data::detail
