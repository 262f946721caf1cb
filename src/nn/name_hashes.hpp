#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sconce::nn {

/// Checks that the names, in this order, stay apart in the hash table of a torch::OrderedDict. The
/// hash is public, so a file can contain names that all fall into one bucket. Inserting n of these
/// would take n * n steps.
/// @throw c10::Error, beginning with `who`, if too many names share a bucket.
inline void check_name_hashes(const std::vector<std::string_view>& names, const std::string& who) {
  constexpr size_t most = 64;  // names that nobody chose for this need at most about 10
  struct Unchanged {
    size_t operator()(size_t hash) const { return hash; }
  };
  std::unordered_multiset<size_t, Unchanged> hashes;  // grows as the dict's table
  const auto check = [&](size_t bucket) {
    TORCH_CHECK(hashes.bucket_size(bucket) <= most, who,
                "expected names that differ in their hashes, got more than ", most,
                " that share a place in a torch::OrderedDict");
  };
  for (const auto name : names) {
    hashes.insert(std::hash<std::string_view>()(name));
    check(hashes.bucket(std::hash<std::string_view>()(name)));
  }
  // After the table has grown, names that nothing was inserted next to can share a bucket too.
  for (size_t bucket = 0; bucket < hashes.bucket_count(); ++bucket) check(bucket);
}

}  // namespace sconce::nn
