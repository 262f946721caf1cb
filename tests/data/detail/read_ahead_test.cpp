#include "sconce/data/detail/read_ahead.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::detail::ReadAhead;

namespace {

std::vector<ReadAhead::Make> workers(int count, const ReadAhead::Make& make) {
  return {static_cast<size_t>(count), make};
}

std::shared_ptr<void> number(int64_t index, const std::stop_token&) {
  return std::make_shared<int64_t>(index);
}

}  // namespace

TEST_CASE("ReadAhead returns batches in order and null after the last batch") {
  const auto count = GENERATE(1, 2, 5);
  const auto ahead = GENERATE(1, 3, 100);
  // The workers yield occasionally, so they finish in an unpredictable order.
  ReadAhead reader(workers(count,
                           [](int64_t index, const std::stop_token& stop) {
                             if (index % 3 == 0) std::this_thread::yield();
                             return number(index, stop);
                           }),
                   ahead, 5, 105);
  for (int64_t i = 5; i < 105; ++i) {
    const auto batch = std::static_pointer_cast<int64_t>(reader.next());
    REQUIRE(batch);
    CHECK(*batch == i);
  }
  CHECK(reader.next() == nullptr);
  CHECK(reader.next() == nullptr);
}

TEST_CASE(
    "ReadAhead throws a worker's error in place of the failed batch and returns null afterward") {
  ReadAhead reader(workers(3,
                           [](int64_t index, const std::stop_token& stop) {
                             if (index >= 4) throw std::runtime_error(std::to_string(index));
                             return number(index, stop);
                           }),
                   6, 0, 10);
  for (int64_t i = 0; i < 4; ++i) CHECK(*std::static_pointer_cast<int64_t>(reader.next()) == i);
  CHECK_THROWS_WITH(reader.next(), "4");
  CHECK(reader.next() == nullptr);
}

TEST_CASE("destroying a ReadAhead asks its worker to stop and waits until the worker has stopped") {
  std::atomic<bool> is_at_it = false, is_done = false;
  {
    ReadAhead reader(workers(1,
                             [&](int64_t, const std::stop_token& stop) {
                               is_at_it = true;
                               while (!stop.stop_requested()) std::this_thread::yield();
                               is_done = true;
                               return nullptr;
                             }),
                     1, 0, 10);
    while (!is_at_it) std::this_thread::yield();
    CHECK_FALSE(is_done);
  }
  CHECK(is_done);
}

TEST_CASE("a ReadAhead worker does not start another batch after a stop request") {
  std::atomic<int> begun = 0;
  {
    const auto wait_for_stop = [&](int64_t index, const std::stop_token& stop) {
      ++begun;
      while (!stop.stop_requested()) std::this_thread::yield();
      return number(index, stop);
    };
    const ReadAhead reader(workers(1, wait_for_stop), 5, 0, 10);
    while (begun == 0) std::this_thread::yield();
  }
  CHECK(begun == 1);
}

TEST_CASE("ReadAhead rejects an empty worker list and a read-ahead of zero batches") {
  CHECK_THROWS_WITH(ReadAhead({}, 1, 0, 3), ContainsSubstring("at least 1 worker, got none"));
  CHECK_THROWS_WITH(ReadAhead(workers(1, number), 0, 0, 3),
                    ContainsSubstring("ahead to be at least 1, got 0"));
}
