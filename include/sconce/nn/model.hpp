#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <type_traits>
#include <utility>

namespace sconce::nn {

namespace detail {

// Functions are excluded because dereferencing a function yields a function, so the recursion would
// never end.
template <class T>
constexpr bool is_model() {
  if constexpr (std::derived_from<T, torch::nn::Module>) {
    return true;
  } else if constexpr (std::is_class_v<T> || std::is_pointer_v<T>) {
    if constexpr (requires(T& pointer) { *pointer; }) {
      using Pointee = std::remove_cvref_t<decltype(*std::declval<T&>())>;
      if constexpr (std::is_class_v<Pointee>) return is_model<Pointee>();
    }
  }
  return false;
}

}  // namespace detail

/// Satisfied by modules, module holders such as `torch::nn::Linear`, and pointers to either.
template <class T>
concept Model = detail::is_model<std::remove_cvref_t<T>>();

namespace detail {

// Fails to compile, with the message below, if `M` is not a model.
template <class M>
constexpr void check_model() {
  static_assert(Model<M>,
                "sconce: expected a model, which is a torch::nn::Module, a module holder, or a "
                "pointer to one, got another type; `Sequential net(ReLU());` declares a function: "
                "write Sequential net{ReLU()};");
}

}  // namespace detail

}  // namespace sconce::nn
