#pragma once

#include <utility>

namespace sconce::test {

/// Whether an expression of this type has `begin()`. A temporary must not have one whose iterator
/// would dangle.
template <class T>
concept Begins = requires(T&& source) { std::forward<T>(source).begin(); };

/// The same for `begin(batch, epoch)`.
template <class T>
concept BeginsAtBatch = requires(T&& source) { std::forward<T>(source).begin(0, 0); };

}  // namespace sconce::test
