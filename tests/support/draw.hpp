#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace sconce::test {

/// Makes random choices that depend only on the seed.
class Draw {
 public:
  explicit Draw(uint32_t seed) : dice_(seed) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(dice_()) % limit; }
  bool one_in(int64_t n) { return below(n) == 0; }

  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

  template <class List>
  auto& from(List& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937 dice_;
};

}  // namespace sconce::test
