#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sconce::nn {

template <class T>
struct TensorTree;

/// Satisfied by containers that hold tensors at any depth, including containers that `TensorTree`
/// does not support.
template <class T>
concept ContainerOfTensors =
    (requires { typename T::value_type; } && TensorTree<typename T::value_type>::any) ||
    (std::is_array_v<T> && TensorTree<std::remove_all_extents_t<T>>::any);

/// Finds the tensors in a value of type `T`. sconce functions that accept or return nested
/// containers of tensors use this class to traverse vectors, tuples, pairs, maps, and optionals at
/// any depth. `TensorTree` is unrelated to `torch.nested`. Python: `torch.utils._pytree`.
///
/// Other tensor containers, such as `std::array`, `std::unordered_map`, and `at::TensorList`, do
/// not compile. Otherwise, the tensors in such containers would be silently ignored. All other
/// types are treated as if they contained no tensors.
///
/// Specialize this template to support additional types. For a class, derive the specialization
/// from `TensorMembers`. A specialization must define the following members. A type without tensors
/// needs only the first three:
/// - `any`: whether a `T` can contain tensors;
/// - `only`: whether a `T` contains only tensors and keys;
/// - `for_each(value, f)`: calls `f` with each tensor in a `T&` or `const T&`, in a fixed order;
/// - `alike(a, b)`: whether two values have the same lengths, keys, and undefined tensors.
template <class T>
struct TensorTree {
  static_assert(!ContainerOfTensors<T>,
                "sconce::nn::TensorTree: the tensors in a container of this type would be skipped: "
                "use a std::vector, tuple, pair, map, or optional of tensors, or specialize "
                "TensorTree");
  static constexpr bool any = false;   ///< the type contains no tensors
  static constexpr bool only = false;  ///< the type contains no tensors
  /// Does nothing, because the type contains no tensors.
  template <class Value, class F>
  static void for_each(Value&, const F&) {}
};

template <>
struct TensorTree<at::Tensor> {
  static constexpr bool any = true;
  static constexpr bool only = true;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    f(value);
  }
  static bool alike(const at::Tensor& a, const at::Tensor& b) { return a.defined() == b.defined(); }
};

template <class T>
struct TensorTree<std::vector<T>> {
  static constexpr bool any = TensorTree<T>::any;
  static constexpr bool only = TensorTree<T>::only;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    if constexpr (any) {
      for (auto& item : value) TensorTree<T>::for_each(item, f);
    }
  }
  static bool alike(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), TensorTree<T>::alike);
  }
};

template <class T>
struct TensorTree<std::optional<T>> {
  static constexpr bool any = TensorTree<T>::any;
  static constexpr bool only = TensorTree<T>::only;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    if (value) TensorTree<T>::for_each(*value, f);
  }
  static bool alike(const std::optional<T>& a, const std::optional<T>& b) {
    return a && b ? TensorTree<T>::alike(*a, *b) : a.has_value() == b.has_value();
  }
};

template <class Key, class T, class Compare>
struct TensorTree<std::map<Key, T, Compare>> {
  static constexpr bool any = TensorTree<T>::any;
  static constexpr bool only = TensorTree<T>::only;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    for (auto& item : value) TensorTree<T>::for_each(item.second, f);
  }
  static bool alike(const std::map<Key, T, Compare>& a, const std::map<Key, T, Compare>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && TensorTree<T>::alike(x.second, y.second);
    });
  }
};

template <class... Ts>
struct TensorTree<std::tuple<Ts...>> {
  static constexpr bool any = (TensorTree<Ts>::any || ...);
  static constexpr bool only = (TensorTree<Ts>::only && ...);
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    std::apply([&](auto&... items) { (TensorTree<Ts>::for_each(items, f), ...); }, value);
  }
  static bool alike(const std::tuple<Ts...>& a, const std::tuple<Ts...>& b) {
    return std::apply(
        [&](const auto&... x) {
          return std::apply([&](const auto&... y) { return (TensorTree<Ts>::alike(x, y) && ...); },
                            b);
        },
        a);
  }
};

template <class A, class B>
struct TensorTree<std::pair<A, B>> {
  static constexpr bool any = TensorTree<A>::any || TensorTree<B>::any;
  static constexpr bool only = TensorTree<A>::only && TensorTree<B>::only;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    TensorTree<A>::for_each(value.first, f);
    TensorTree<B>::for_each(value.second, f);
  }
  static bool alike(const std::pair<A, B>& a, const std::pair<A, B>& b) {
    return TensorTree<A>::alike(a.first, b.first) && TensorTree<B>::alike(a.second, b.second);
  }
};

/// Calls `f` with each tensor in `value`, in the order defined by `TensorTree`.
template <class T, class F>
void for_each_tensor(T& value, const F& f) {
  TensorTree<std::remove_const_t<T>>::for_each(value, f);
}

/// Base class for specializing `TensorTree` for a class whose tensors are all stored in the given
/// members:
///
///     struct Sentences { torch::Tensor tokens, mask; };
///     template <>
///     struct sconce::nn::TensorTree<Sentences>
///         : sconce::nn::TensorMembers<&Sentences::tokens, &Sentences::mask> {};
template <auto... members>
struct TensorMembers {
 private:
  template <class C, class T>
  static T type_of(T C::*);
  using Types = std::tuple<decltype(type_of(members))...>;

 public:
  static constexpr bool any = TensorTree<Types>::any;  ///< whether any member can contain tensors
  /// Whether all members contain only tensors.
  static constexpr bool only = TensorTree<Types>::only;
  /// Calls `f` with each member's tensors, in member order.
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    (for_each_tensor(value.*members, f), ...);
  }
  /// Returns whether corresponding members of two values are alike.
  static constexpr auto alike = [](const auto& a, const auto& b) {
    return (TensorTree<decltype(type_of(members))>::alike(a.*members, b.*members) && ...);
  };
};

}  // namespace sconce::nn
