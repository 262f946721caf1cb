#include "sconce/data/detail/stream_reader.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"

using sconce::data::detail::chunk_order;
using Order = std::vector<int64_t>;

TEST_CASE("without a shuffle buffer, items in a chunk keep their order") {
  CHECK(chunk_order({}, {}, 3) == Order{0, 1, 2});
  CHECK(chunk_order({.shuffle_buffer = 4}, {}, 0).empty());
}

TEST_CASE("the item order in a chunk depends only on the seed, the pass, and the chunk index") {
  const auto order = [](uint64_t seed, int64_t pass, int64_t chunk) {
    return chunk_order({.shuffle_buffer = 20, .seed = seed}, {.pass = pass, .chunk = chunk}, 20);
  };
  Order sorted = order(1, 2, 3), all(20);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  CHECK(order(1, 2, 3) == order(1, 2, 3));
  CHECK(order(0, 2, 3) != order(1, 2, 3));
  CHECK(order(1, 0, 3) != order(1, 2, 3));
  CHECK(order(1, 2, 0) != order(1, 2, 3));
}
