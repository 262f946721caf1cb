#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>

namespace sconce::io {

/// A tensor type in files written by torch.save.
struct TorchType {
  c10::ScalarType type;
  const char* name;     ///< Python's name in the torch module
  const char* storage;  ///< torch's storage class; null if storages are untyped
};

inline constexpr std::array torch_types = {
    TorchType{c10::kBool, "bool", "BoolStorage"},
    TorchType{c10::kByte, "uint8", "ByteStorage"},
    TorchType{c10::kChar, "int8", "CharStorage"},
    TorchType{c10::kShort, "int16", "ShortStorage"},
    TorchType{c10::kInt, "int32", "IntStorage"},
    TorchType{c10::kLong, "int64", "LongStorage"},
    TorchType{c10::kHalf, "float16", "HalfStorage"},
    TorchType{c10::kBFloat16, "bfloat16", "BFloat16Storage"},
    TorchType{c10::kFloat, "float32", "FloatStorage"},
    TorchType{c10::kDouble, "float64", "DoubleStorage"},
    TorchType{c10::kComplexFloat, "complex64", "ComplexFloatStorage"},
    TorchType{c10::kComplexDouble, "complex128", "ComplexDoubleStorage"},
    TorchType{c10::kComplexHalf, "complex32", nullptr},
    TorchType{c10::kUInt16, "uint16", nullptr},
    TorchType{c10::kUInt32, "uint32", nullptr},
    TorchType{c10::kUInt64, "uint64", nullptr},
    TorchType{c10::kFloat8_e5m2, "float8_e5m2", nullptr},
    TorchType{c10::kFloat8_e4m3fn, "float8_e4m3fn", nullptr},
    TorchType{c10::kFloat8_e5m2fnuz, "float8_e5m2fnuz", nullptr},
    TorchType{c10::kFloat8_e4m3fnuz, "float8_e4m3fnuz", nullptr},
    TorchType{c10::kFloat8_e8m0fnu, "float8_e8m0fnu", nullptr},
    TorchType{c10::kFloat4_e2m1fn_x2, "float4_e2m1fn_x2", nullptr}};

/// Returns the first type for which `matches` returns true, or null.
template <class F>
const TorchType* find_torch_type(const F& matches) {
  const auto* found = std::find_if(torch_types.begin(), torch_types.end(), matches);
  return found == torch_types.end() ? nullptr : found;
}

}  // namespace sconce::io
