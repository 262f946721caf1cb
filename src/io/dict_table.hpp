#pragma once

#include <ATen/core/Dict.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// LibTorch's Dict doubles its table until no key lies far from where its hash puts it. Whoever
// writes a file can choose keys that stay together: 60 of them made it take all memory there is.
namespace sconce::io {

/// A key's place in a table as large as can be, and what tells it from others at that place.
using HashedKey = std::pair<uint64_t, std::string_view>;

inline HashedKey hashed(const c10::IValue& key) {
  constexpr uint64_t golden = 11400714819323198485U;  // c10's ska_ordered::fibonacci_hash_policy
  return {golden * c10::detail::DictKeyHash()(key),
          key.isString() ? key.toStringView() : std::string_view()};
}

/// Whether sorted keys fit in 2^bits slots: each behind the one before, near its place.
inline bool fits_in_slots(const std::vector<HashedKey>& keys, int bits) {
  const auto reach = static_cast<uint64_t>(std::max(4, bits));
  uint64_t next = 0;
  for (const auto& key : keys) {
    const uint64_t place = key.first >> (64 - bits);
    next = std::max(next, place);
    if (next - place >= reach) return false;
    ++next;
  }
  return true;
}

/// Returns how many slots a Dict with these keys takes, or more than `most` if it takes more.
inline uint64_t dict_slots(std::vector<HashedKey> keys, uint64_t most) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  int bits = std::max(2, static_cast<int>(std::bit_width(2 * keys.size())));
  while (uint64_t{1} << bits <= most && !fits_in_slots(keys, bits)) ++bits;
  return uint64_t{1} << bits;
}

}  // namespace sconce::io
