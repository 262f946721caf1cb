#include "sconce/data/detail/loader_base.hpp"

#include <cstdint>
#include <vector>

#include "catch.hpp"

using sconce::data::detail::EpochItems;

TEST_CASE("an epoch's order is split into batches, and the last batch may be shorter") {
  EpochItems epoch{.order = {}, .items = 5, .batch_size = 2, .seed = 0, .epoch = 0};
  CHECK(epoch.of(1) == std::vector<int64_t>{2, 3});
  CHECK(epoch.of(2) == std::vector<int64_t>{4});
  epoch.order = torch::tensor({4, 0, 3, 1, 2});
  CHECK(epoch.of(0) == std::vector<int64_t>{4, 0});
  CHECK(epoch.of(2) == std::vector<int64_t>{2});
}
