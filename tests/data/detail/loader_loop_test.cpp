#include "sconce/data/detail/loader_loop.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::detail::ItemError;
using sconce::data::detail::LoaderLoop;
using sconce::data::detail::wrap_batch;

namespace {

int64_t number_of(LoaderLoop& loop) {
  return static_cast<const sconce::data::detail::TypedBatch<int64_t>&>(loop.batch()).batch;
}

// A loop over batches 2 to 5 of epoch 9. The loop either reads the batches itself or uses workers.
struct Loop {
  Loop(int workers, const LoaderLoop::Make& make)
      : loop(std::vector<LoaderLoop::Make>(static_cast<size_t>(std::max(workers, 1)), make),
             {.first = 2, .last = 6, .epoch = 9, .ahead = 2 * workers, .failed_item = of_all}) {}
  std::shared_ptr<std::atomic<int64_t>> of_all = std::make_shared<std::atomic<int64_t>>(-1);
  LoaderLoop loop;
};

}  // namespace

TEST_CASE("a loader loop returns its range's batches in order and throws past the end") {
  const auto workers = GENERATE(0, 1, 3);
  Loop of(workers, [](int64_t index, const auto&) { return wrap_batch(index); });
  CHECK(of.loop.epoch() == 9);
  for (int64_t i = 2; i < 6; ++i) {
    REQUIRE_FALSE(of.loop.is_over());
    if (i != 3) CHECK(number_of(of.loop) == i);
    of.loop.advance();
  }
  CHECK(of.loop.is_over());
  CHECK_THROWS_WITH(of.loop.batch(),
                    ContainsSubstring("below 6, got 6, which is past the end of the epoch"));
  CHECK_THROWS_WITH(of.loop.advance(), ContainsSubstring("which is past the end of the epoch"));
  CHECK(of.loop.is_over());
}

TEST_CASE("a loader loop rethrows an item's exception on each call and reports the item") {
  const auto workers = GENERATE(0, 1, 3);
  Loop of(workers, [](int64_t index, const auto&) {
    if (index < 4) return wrap_batch(index);
    const auto error = std::make_exception_ptr(std::out_of_range(std::to_string(index)));
    throw ItemError{.item = 10 * index, .error = error};
  });
  of.loop.advance();
  of.loop.advance();
  CHECK(of.loop.failed_item() == std::nullopt);
  CHECK_FALSE(of.loop.is_over());
  for (int turn = 0; turn < 3; ++turn) {
    CHECK_THROWS_AS(of.loop.batch(), std::out_of_range);
    CHECK_THROWS_WITH(of.loop.advance(), "4");
    CHECK(of.loop.is_over());
    CHECK(of.loop.failed_item() == 40);
    CHECK(*of.of_all == 40);
    *of.of_all = 7;  // belongs to another loop
  }
}

TEST_CASE(
    "if waiting for a batch fails, a loader loop rethrows the error on each call and reports no "
    "failed item") {
  const auto workers = GENERATE(0, 2);
  Loop of(workers, [](int64_t index, const auto&) {
    auto number = std::make_shared<sconce::data::detail::MadeBatch>();
    if (index == 3) number->wait = [] { throw std::runtime_error("no stream"); };
    return number;
  });
  of.loop.advance();
  *of.of_all = 7;
  CHECK_THROWS_WITH(of.loop.batch(), "no stream");
  CHECK_THROWS_WITH(of.loop.batch(), "no stream");
  CHECK_THROWS_WITH(of.loop.advance(), "no stream");
  CHECK(of.loop.is_over());
  CHECK(of.loop.failed_item() == std::nullopt);
  CHECK(*of.of_all == -1);
}
