#include "simgpu/runtime/nccl/reduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "simgpu/runtime/nccl/failure.hpp"

namespace simgpu::nccl {

namespace {

// The type used to compute a reduction of `T` elements.
template <class T>
struct Computed {
  using type = T;
};
template <>
struct Computed<__half> {
  using type = float;
};
template <>
struct Computed<__nv_bfloat16> {
  using type = float;
};

template <class T>
auto widened(T value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(value);
  } else {
    return value;
  }
}

template <class T>
T narrowed(typename Computed<T>::type value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// Integers must wrap around, but signed overflow is undefined in C++.
template <class C>
C sum(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class C>
C product(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// A non-NaN value takes precedence over NaN.
template <class C>
C larger(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return std::max(a, b);
  } else {
    return std::fmax(a, b);
  }
}

template <class C>
C smaller(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return std::min(a, b);
  } else {
    return std::fmin(a, b);
  }
}

template <class C>
void combine(ncclRedOp_t op, C& total, C value) {
  switch (op) {
    case ncclProd:
      total = product(total, value);
      break;
    case ncclMax:
      total = larger(total, value);
      break;
    case ncclMin:
      total = smaller(total, value);
      break;
    default:
      total = sum(total, value);
  }
}

template <class T>
void reduce_elements(const Reduction& reduction, std::span<const void* const> inputs, T* out,
                     size_t count) {
  using C = typename Computed<T>::type;
  constexpr size_t block = 1024;
  std::array<C, block> totals;
  const C factor = reduction.factor == nullptr
                       ? C{1}
                       : static_cast<C>(widened(*static_cast<const T*>(reduction.factor.get())));
  const auto divisor = static_cast<C>(reduction.op == ncclAvg ? inputs.size() : 1);
  for (size_t begin = 0; begin < count; begin += block) {
    const size_t size = std::min(block, count - begin);
    for (size_t input = 0; input < inputs.size(); ++input) {
      const auto* in = static_cast<const T*>(inputs[input]) + begin;
      for (size_t i = 0; i < size; ++i) {
        const C value = product<C>(widened(in[i]), factor);
        if (input == 0) {
          totals[i] = value;
        } else {
          combine(reduction.op, totals[i], value);
        }
      }
    }
    for (size_t i = 0; i < size; ++i) {
      out[begin + i] = narrowed<T>(static_cast<C>(totals[i] / divisor));
    }
  }
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      throw Failure(ncclInvalidArgument, "unknown data type " + std::to_string(type));
  }
}

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "int8";
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclUint32:
      return "uint32";
    case ncclInt64:
      return "int64";
    case ncclUint64:
      return "uint64";
    case ncclFloat16:
      return "float16";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    case ncclBfloat16:
      return "bfloat16";
    case ncclFloat8e4m3:
      return "float8_e4m3fn";
    default:
      return "float8_e5m2";
  }
}

const char* name_of(const Reduction& reduction) {
  if (reduction.factor != nullptr) return "sum with a factor";
  switch (reduction.op) {
    case ncclProd:
      return "product";
    case ncclMax:
      return "max";
    case ncclMin:
      return "min";
    case ncclAvg:
      return "average";
    default:
      return "sum";
  }
}

void check_reducible(ncclDataType_t type) {
  if (size_of(type) == 1 && type != ncclInt8 && type != ncclUint8) {
    throw Failure(ncclInvalidUsage, "reductions of float8 are not supported");
  }
}

void reduce(const Reduction& reduction, ncclDataType_t type, std::span<const void* const> inputs,
            void* out, size_t count) {
  const auto run = [&]<class T>(T* typed_out) {
    reduce_elements(reduction, inputs, typed_out, count);
  };
  switch (type) {
    case ncclInt8:
      return run(static_cast<int8_t*>(out));
    case ncclUint8:
      return run(static_cast<uint8_t*>(out));
    case ncclInt32:
      return run(static_cast<int32_t*>(out));
    case ncclUint32:
      return run(static_cast<uint32_t*>(out));
    case ncclInt64:
      return run(static_cast<int64_t*>(out));
    case ncclUint64:
      return run(static_cast<uint64_t*>(out));
    case ncclFloat16:
      return run(static_cast<__half*>(out));
    case ncclFloat32:
      return run(static_cast<float*>(out));
    case ncclFloat64:
      return run(static_cast<double*>(out));
    case ncclBfloat16:
      return run(static_cast<__nv_bfloat16*>(out));
    default:
      return check_reducible(type);
  }
}

}  // namespace simgpu::nccl
