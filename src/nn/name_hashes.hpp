#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sconce::nn {

/// Checks that the names, inserted in this order, are spread over the hash table of a
/// torch::OrderedDict. The hash function is public, so a file can contain names that all belong to
/// the same bucket. Inserting n such names would take n * n steps.
/// @throw c10::Error with the prefix `error_prefix` if too many names share a bucket.
inline void check_name_hashes(const std::vector<std::string_view>& names,
                              const std::string& error_prefix) {
  constexpr size_t most = 64;  // about 10 are enough for ordinary names
  struct Unchanged {
    size_t operator()(size_t hash) const { return hash; }
  };
  std::unordered_multiset<size_t, Unchanged> hashes;  // grows like the dict's table
  const auto check = [&](size_t bucket) {
    TORCH_CHECK(hashes.bucket_size(bucket) <= most, error_prefix,
                "expected names with different hashes, got more than ", most,
                " names in one bucket of a torch::OrderedDict");
  };
  for (const auto name : names) {
    hashes.insert(std::hash<std::string_view>()(name));
    check(hashes.bucket(std::hash<std::string_view>()(name)));
  }
  // When the table grows, names can move into the same bucket even if no name is inserted there.
  for (size_t bucket = 0; bucket < hashes.bucket_count(); ++bucket) check(bucket);
}

}  // namespace sconce::nn
