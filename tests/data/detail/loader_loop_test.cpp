#include "sconce/data/detail/loader_loop.hpp"

#include <vector>

#include "catch.hpp"

using sconce::data::ReadAhead;
using sconce::data::detail::LoaderLoop;
using sconce::data::detail::MadeBatch;

namespace {

struct Number : MadeBatch {
  int64_t number = 0;
};

ReadAhead::Make numbers() {
  return [](int64_t index, const std::stop_token&) -> std::shared_ptr<void> {
    auto made = std::make_shared<Number>();
    made->number = index;
    return std::static_pointer_cast<MadeBatch>(made);
  };
}

// A loop with workers, or one that reads by itself if there are none.
LoaderLoop loop_of(const ReadAhead::Make& make, int workers, const LoaderLoop::Range& range) {
  if (workers == 0) return {make, range};
  return {std::vector<ReadAhead::Make>(static_cast<size_t>(workers), make), workers, range};
}

}  // namespace

TEST_CASE("a loop has the batches of its range, each after the one before") {
  const auto workers = GENERATE(0, 1, 3);
  auto loop = loop_of(numbers(), workers, {.first = 2, .last = 6, .epoch = 9});
  CHECK(loop.epoch() == 9);
  for (int64_t i = 2; i < 6; ++i) {
    REQUIRE_FALSE(loop.is_over());
    if (i != 3) CHECK(static_cast<const Number&>(loop.batch()).number == i);
    loop.advance();
  }
  CHECK(loop.is_over());
}
