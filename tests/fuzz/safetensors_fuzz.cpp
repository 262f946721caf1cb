#include <cstring>

#include "fuzz/target.hpp"
#include "sconce/io/safetensors.hpp"

using sconce::StateDict;
using sconce::io::load_safetensors;
using sconce::io::load_safetensors_metadata;
using sconce::io::save_safetensors;
using sconce::test::expect;
using sconce::test::folder;

namespace {

// Compares all bytes. The tensor order may differ, because files are written in the order that the
// format specifies.
bool same(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& item : a) {
    const auto& x = item.value();
    const auto* y = b.find(item.key());
    if (y == nullptr || x.scalar_type() != y->scalar_type() || x.sizes() != y->sizes())
      return false;
    if (x.nbytes() == 0) continue;
    if (std::memcmp(x.const_data_ptr(), y->const_data_ptr(), x.nbytes()) != 0) return false;
  }
  return true;
}

bool is_refused(const std::filesystem::path& file) {
  try {
    load_safetensors_metadata(file);
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace

SCONCE_FUZZ_TARGET(safetensors)(const uint8_t* data, size_t size) {
  const auto file = folder().write("in.safetensors", sconce::test::text(data, size));
  StateDict mapped;
  try {
    mapped = load_safetensors(file);
  } catch (const c10::Error&) {
    expect(is_refused(file), "the metadata of a refused file were read");
    return 0;
  }
  expect(same(mapped, load_safetensors(file, {.mmap = false})), "mapped and read tensors differ");
  const auto metadata = load_safetensors_metadata(file);
  const auto again = folder().path() / "out.safetensors";
  save_safetensors(again, mapped, metadata);
  expect(same(mapped, load_safetensors(again)), "the saved tensors differ");
  expect(load_safetensors_metadata(again) == metadata, "the saved metadata differ");
  return 0;
}
