#include <ATen/EmptyTensor.h>

#include <bit>
#include <cstring>
#include <unordered_map>

#include "fuzz/archive.hpp"
#include "fuzz/target.hpp"
#include "sconce/io/torch_file.hpp"

using c10::IValue;
using sconce::test::expect;
using sconce::test::folder;

namespace {

// Compares two values, and checks that memory is shared at the same positions in both.
class Comparison {
 public:
  bool same(const IValue& a, const IValue& b) {
    if (a.tagKind() != b.tagKind()) return false;
    if (a.isTensor()) return same_tensors(a.toTensor(), b.toTensor());
    if (a.isDouble()) {
      return std::bit_cast<uint64_t>(a.toDouble()) == std::bit_cast<uint64_t>(b.toDouble());
    }
    if (!a.isTuple() && !a.isList() && !a.isGenericDict()) return a == b;
    // A few bytes can refer to a container so many times that visiting every occurrence would never
    // end.
    const auto [other, is_new] = others_.emplace(a.internalToPointer(), b.internalToPointer());
    if (!is_new) return other->second == b.internalToPointer();
    if (a.isTuple()) return same_items(a.toTupleRef().elements(), b.toTupleRef().elements());
    if (a.isList()) return same_items(a.toListRef(), b.toListRef());
    const auto x = a.toGenericDict(), y = b.toGenericDict();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const auto& i, const auto& j) {
      return same(i.key(), j.key()) && same(i.value(), j.value());
    });
  }

 private:
  bool same_items(c10::ArrayRef<IValue> a, c10::ArrayRef<IValue> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const IValue& i, const IValue& j) { return same(i, j); });
  }

  // Compares the storages, because a view with strides of 0 may be far larger than its storage.
  bool same_tensors(const at::Tensor& a, const at::Tensor& b) {
    const auto &x = a.storage(), &y = b.storage();
    expect(at::detail::computeStorageNbytes(a.sizes(), a.strides(), a.element_size(),
                                            a.storage_offset()) <= x.nbytes(),
           "a tensor reaches beyond its memory");
    const auto [other, is_new] = others_.emplace(x.data(), y.data());
    return other->second == y.data() && x.nbytes() == y.nbytes() &&
           (!is_new || x.nbytes() == 0 || std::memcmp(x.data(), y.data(), x.nbytes()) == 0) &&
           a.scalar_type() == b.scalar_type() && a.storage_offset() == b.storage_offset() &&
           a.sizes() == b.sizes() && a.strides() == b.strides() && a.is_conj() == b.is_conj() &&
           a.is_neg() == b.is_neg() && a.requires_grad() == b.requires_grad();
  }

  std::unordered_map<const void*, const void*> others_ = {};
};

}  // namespace

// The first byte determines whether the remaining bytes are a complete file or only its pickle.
SCONCE_FUZZ_TARGET(torch_file)(const uint8_t* data, size_t size) {
  static const std::vector<std::string> storages(4, std::string(64, 'x'));
  if (size == 0) return 0;
  const std::string rest(sconce::test::text(data + 1, size - 1));
  const auto file =
      folder().write("in.pt", data[0] == 0 ? rest : sconce::test::archive_of(rest, storages));
  IValue value;
  try {
    value = sconce::io::load_torch(file);
  } catch (const c10::Error&) {
    return 0;
  }
  const auto again = folder().path() / "out.pt";
  try {
    sconce::io::save_torch(again, value);
  } catch (const c10::Error& error) {  // Python's torch.save rejects this too
    const std::string cause = error.what_without_backtrace();
    expect(cause.find("tensors that share memory") != cause.npos, "a loaded value cannot be saved");
    return 0;
  }
  expect(Comparison().same(value, sconce::io::load_torch(again)), "the saved value differs");
  return 0;
}
