#include "sconce/data/detail/batch_reader.hpp"

#include <stdexcept>
#include <stop_token>
#include <vector>

#include "catch.hpp"
#include "sconce/data/collate.hpp"

using sconce::data::Stack;
using sconce::data::detail::BatchReader;
using sconce::data::detail::EpochItems;
using sconce::data::detail::ItemError;

namespace {

struct Squares {
  int64_t size() const { return 10; }
  torch::Tensor get(int64_t i) const { return torch::tensor(i * i); }
};

}  // namespace

TEST_CASE("each item in an epoch has a separate generator") {
  const EpochItems epoch{.order = {}, .items = 5, .batch_size = 2, .seed = 1, .epoch = 2};
  const auto drawn = [&](int64_t item) {
    return torch::rand({3}, sconce::data::detail::item_generator(epoch, item));
  };
  CHECK(torch::equal(drawn(3), drawn(3)));
  CHECK_FALSE(torch::equal(drawn(3), drawn(4)));
}

TEST_CASE("a batch reader reports the item that threw and keeps its exception") {
  struct Broken : Squares {
    torch::Tensor get(int64_t i) const {
      if (i == 4) throw std::out_of_range("four");
      return Squares::get(i);
    }
  } source;
  const Stack stack;
  BatchReader reader(source, stack);
  const EpochItems epoch{.order = {}, .items = 10, .batch_size = 3, .seed = 0, .epoch = 0};
  try {
    reader.read(epoch, 1, {});
    FAIL("nothing was thrown");
  } catch (const ItemError& of_item) {
    CHECK(of_item.item == 4);
    CHECK_THROWS_AS(std::rethrow_exception(of_item.error), std::out_of_range);
  }
}

TEST_CASE("a batch reader reads no more items after a stop request") {
  const Squares source;
  const Stack stack;
  BatchReader reader(source, stack);
  const EpochItems epoch{.order = {}, .items = 10, .batch_size = 3, .seed = 0, .epoch = 0};
  std::stop_source stop;
  CHECK(torch::equal(reader.read(epoch, 1, stop.get_token()), torch::tensor({9, 16, 25})));
  stop.request_stop();
  CHECK_THROWS_AS(reader.read(epoch, 2, stop.get_token()), decltype(reader)::Stopped);
}
