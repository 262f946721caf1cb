#include "sconce/data/batches.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::data::Batches;
using sconce::data::BatchesOptions;
using sconce::data::Dataset;

static_assert(std::input_iterator<Batches::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, Batches::Iterator>);

// Returns a dataset in which row i of the data is (2 i, 2 i + 1), and row i of the target is i.
Dataset counting(int64_t rows) {
  return {torch::arange(2 * rows).reshape({rows, 2}), torch::arange(rows)};
}

std::vector<int64_t> lengths(const Batches& batches) {
  std::vector<int64_t> result;
  for (auto [data, target] : batches) {
    CHECK(data.size(0) == target.size(0));
    result.push_back(data.size(0));
  }
  CHECK(batches.size() == static_cast<int64_t>(result.size()));
  return result;
}

// Returns the rows of one epoch in order, and checks that each row's data still matches its target.
std::vector<int64_t> order(const Batches& batches) {
  std::vector<int64_t> rows;
  for (auto [data, target] : batches) {
    CHECK(torch::equal(data.select(1, 0), 2 * target));
    CHECK(torch::equal(data.select(1, 1), 2 * target + 1));
    for (int64_t i = 0; i < target.size(0); ++i) rows.push_back(target[i].item<int64_t>());
  }
  return rows;
}

std::vector<int64_t> sorted(std::vector<int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string refusal(const Dataset& dataset, BatchesOptions options = {}) {
  return sconce::test::error_of([&] { const Batches batches(dataset, options); });
}

// Finds the lines in reference/batches.txt that begin with `kind`, and returns the remainder of
// each line.
std::vector<std::istringstream> reference(const std::string& kind) {
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/batches.txt");
  REQUIRE(file.is_open());
  std::vector<std::istringstream> lines;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(kind + " ")) lines.emplace_back(line.substr(kind.size() + 1));
  }
  REQUIRE(!lines.empty());
  return lines;
}

// Returns the row orders from Python for the given row count and seed, keyed by epoch.
std::map<int64_t, std::vector<int64_t>> orders_of_python(int64_t rows, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> orders;
  for (auto& line : reference("order")) {
    int64_t of_rows = 0, epoch = 0;
    uint64_t of_seed = 0;
    line >> of_rows >> of_seed >> epoch;
    if (of_rows != rows || of_seed != seed) continue;
    orders[epoch].assign(std::istream_iterator<int64_t>(line), {});
  }
  return orders;
}

}  // namespace

TEST_CASE("Batches has the same defaults as Python's DataLoader") {
  const BatchesOptions options;
  std::vector<std::string> names;
  for (auto& line : reference("default")) {
    int64_t value = -1;
    line >> names.emplace_back() >> value;
    if (names.back() == "batch_size") CHECK(options.batch_size == value);
    if (names.back() == "shuffle") CHECK(options.shuffle == (value == 1));
    if (names.back() == "drop_last") CHECK(options.drop_last == (value == 1));
    if (names.back() == "seed") CHECK(options.seed == static_cast<uint64_t>(value));
  }
  CHECK(names == std::vector<std::string>{"batch_size", "shuffle", "drop_last", "seed"});
}

TEST_CASE("Batches orders rows like Python's DistributedSampler with one replica") {
  for (auto& line : reference("order")) {
    int64_t rows = 0;
    int64_t epoch = 0;
    BatchesOptions options{.batch_size = 3, .shuffle = true};
    line >> rows >> options.seed >> epoch;
    const std::vector<int64_t> expected{std::istream_iterator<int64_t>(line), {}};
    CAPTURE(rows, options.seed, epoch);
    REQUIRE(static_cast<int64_t>(expected.size()) == rows);
    Batches batches(counting(rows), options);
    batches.set_epoch(epoch);
    CHECK(order(batches) == expected);
  }
}

TEST_CASE("without shuffling, Batches keeps the dataset's order in every epoch") {
  Batches batches(counting(5), {.batch_size = 2});
  CHECK(order(batches) == std::vector<int64_t>{0, 1, 2, 3, 4});
  batches.set_epoch(1);
  CHECK(order(batches) == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE(
    "Batches uses the same order for the same seed and epoch, and a different order for a "
    "different seed or epoch") {
  Batches batches(counting(50), {.batch_size = 8, .shuffle = true, .seed = 3});
  Batches twin(counting(50), {.batch_size = 7, .shuffle = true, .seed = 3});
  const auto first = order(batches);
  batches.set_epoch(0);
  CHECK(order(batches) == first);
  CHECK(order(twin) == first);
  batches.set_epoch(1);
  CHECK(order(batches) != first);
  batches.set_epoch(0);
  CHECK(order(batches) == first);
  CHECK(order(Batches(counting(50), {.shuffle = true, .seed = 4})) != first);
}

TEST_CASE("Batches returns every row exactly once") {
  const auto shuffle = GENERATE(false, true);
  const auto batch_size = GENERATE(1, 2, 7, 20, 21, 100);
  const Batches batches(counting(20), {.batch_size = batch_size, .shuffle = shuffle});
  CHECK(sorted(order(batches)) == order(Batches(counting(20))));
}

TEST_CASE(
    "Batches ends an epoch with a shorter batch if batch_size does not divide the row count") {
  CHECK(lengths(Batches(counting(10), {.batch_size = 4})) == std::vector<int64_t>{4, 4, 2});
  CHECK(lengths(Batches(counting(8), {.batch_size = 4})) == std::vector<int64_t>{4, 4});
  CHECK(lengths(Batches(counting(3), {.batch_size = 4, .shuffle = true})) ==
        std::vector<int64_t>{3});
}

TEST_CASE("with drop_last set, Batches drops an incomplete last batch") {
  BatchesOptions options{.batch_size = 4, .drop_last = true};
  CHECK(lengths(Batches(counting(10), options)) == std::vector<int64_t>{4, 4});
  CHECK(lengths(Batches(counting(8), options)) == std::vector<int64_t>{4, 4});
  CHECK(lengths(Batches(counting(3), options)).empty());
  options.shuffle = true;
  const auto all = order(Batches(counting(10), {.batch_size = 4, .shuffle = true}));
  CHECK(order(Batches(counting(10), options)) ==
        std::vector<int64_t>(all.begin(), all.begin() + 8));
}

TEST_CASE("Batches accepts a batch_size larger than the dataset") {
  const auto most = std::numeric_limits<int64_t>::max();
  CHECK(lengths(Batches(counting(3), {.batch_size = most})) == std::vector<int64_t>{3});
}

TEST_CASE("Batches over an empty dataset returns no batches") {
  CHECK(lengths(Batches(counting(0))).empty());
  CHECK(lengths(Batches(counting(0), {.batch_size = 4, .shuffle = true})).empty());
}

TEST_CASE("without shuffling, Batches does not copy the dataset") {
  const Dataset dataset = counting(10);
  const Batches batches(dataset, {.batch_size = 4});
  CHECK(batches.dataset().data.is_same(dataset.data));
  CHECK(batches.dataset().target.is_same(dataset.target));
  for (auto [data, target] : batches) {
    CHECK(data.is_alias_of(dataset.data));
    CHECK(target.is_alias_of(dataset.target));
  }
}

TEST_CASE("modifying a batch from shuffled Batches does not change the dataset") {
  const Dataset dataset = counting(10);
  for (auto [data, target] : Batches(dataset, {.batch_size = 4, .shuffle = true})) data.zero_();
  CHECK(torch::equal(dataset.data, counting(10).data));
}

TEST_CASE("Batches neither uses nor changes the global generator") {
  torch::manual_seed(5);
  const torch::Tensor expected = torch::rand({4});
  torch::manual_seed(5);
  Batches batches(counting(100), {.batch_size = 8, .shuffle = true, .seed = 1});
  const auto first = order(batches);
  CHECK(torch::equal(torch::rand({4}), expected));
  torch::manual_seed(6);
  batches.set_epoch(0);
  CHECK(order(batches) == first);
}

TEST_CASE("set_epoch does not change the order of a running loop over Batches") {
  Batches batches(counting(20), {.batch_size = 4, .shuffle = true});
  const auto expected = order(batches);
  batches.set_epoch(0);
  std::vector<int64_t> rows;
  for (auto [data, target] : batches) {
    batches.set_epoch(9);
    for (int64_t i = 0; i < target.size(0); ++i) rows.push_back(target[i].item<int64_t>());
  }
  CHECK(rows == expected);
}

TEST_CASE("Batches keeps the dtype and the trailing dimensions of the rows") {
  const Dataset dataset{torch::zeros({5, 1, 8, 8}, torch::kByte), torch::zeros({5, 2})};
  for (auto [data, target] : Batches(dataset, {.batch_size = 2, .shuffle = true})) {
    CHECK(data.sizes().slice(1) == std::vector<int64_t>{1, 8, 8});
    CHECK(data.scalar_type() == torch::kByte);
    CHECK(target.size(1) == 2);
    CHECK(target.scalar_type() == torch::kFloat);
  }
}

TEST_CASE("without shuffling, Batches works on any device") {
  const Dataset dataset{torch::zeros({10, 2}, torch::kMeta), torch::zeros({10}, torch::kMeta)};
  for (auto [data, target] : Batches(dataset, {.batch_size = 4})) {
    CHECK(data.is_meta());
    CHECK(target.is_meta());
  }
}

TEST_CASE("on a GPU, Batches keeps batches on the device, in the same order as on the CPU",
          "[gpu]") {
  sconce::test::require_gpu();
  const Dataset host = counting(50);
  const Dataset dataset{host.data.cuda(), host.target.cuda()};
  const BatchesOptions options{.batch_size = 8, .shuffle = GENERATE(false, true), .seed = 3};
  const Batches batches(dataset, options);
  CHECK(order(batches) == order(Batches(host, options)));
  for (auto [data, target] : batches) {
    CHECK(data.device() == dataset.data.device());
    CHECK(target.device() == dataset.target.device());
  }
}

TEST_CASE(
    "Batches rejects data or targets that are undefined or zero-dimensional, and rejects "
    "mismatched row counts or devices") {
  const Dataset good = counting(4);
  CHECK(refusal({{}, good.target}) ==
        "sconce::data::Batches: data: expected a tensor, got an undefined tensor");
  CHECK(refusal({good.data, {}}) ==
        "sconce::data::Batches: target: expected a tensor, got an undefined tensor; "
        "sconce::data::TensorBatches splits a single tensor");
  CHECK(refusal({torch::tensor(1), good.target}) ==
        "sconce::data::Batches: data: expected at least 1 dimension, got a 0-dim tensor");
  CHECK(refusal({good.data, torch::tensor(1)}) ==
        "sconce::data::Batches: target: expected at least 1 dimension, got a 0-dim tensor");
  CHECK(refusal({good.data, torch::arange(3)}) ==
        "sconce::data::Batches: target: expected 4 rows as in data, got 3");
  CHECK(
      refusal({good.data, good.target.to(torch::kMeta)}) ==
      "sconce::data::Batches: target: expected a tensor on cpu (like data), got a tensor on meta");
}

TEST_CASE("Batches rejects a batch_size below 1 and a negative epoch") {
  CHECK(refusal(counting(4), {.batch_size = 0}) ==
        "sconce::data::Batches: expected batch_size to be at least 1, got 0");
  CHECK_THAT(refusal(counting(4), {.batch_size = -2}), ContainsSubstring("at least 1, got -2"));
  Batches batches(counting(4));
  CHECK_THROWS_AS(batches.set_epoch(-1), c10::Error);
}

TEST_CASE("with a DistributedSampler, Batches returns the rank's rows in the sampler's order") {
  const auto group = sconce::distributed::ProcessGroup::init();
  std::vector<int64_t> dealt;
  for (const int rank : {0, 1}) {
    sconce::data::DistributedSampler sampler(7, group,
                                             {.num_replicas = 2, .rank = rank, .seed = 3});
    Batches batches(counting(7), {.batch_size = 3, .sampler = sampler});
    CHECK(lengths(batches) == std::vector<int64_t>{3, 1});  // each rank receives one of the rows
    batches.set_epoch(0);
    const auto rows = order(batches);
    CHECK(torch::equal(torch::tensor(rows), sampler.indices()));
    batches.set_epoch(5);
    sampler.set_epoch(5);
    CHECK(torch::equal(torch::tensor(order(batches)), sampler.indices()));
    CHECK_FALSE(torch::equal(torch::tensor(rows), sampler.indices()));
    dealt.insert(dealt.end(), rows.begin(), rows.end());
  }
  dealt = sorted(dealt);
  dealt.erase(std::unique(dealt.begin(), dealt.end()), dealt.end());
  CHECK(dealt == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE(
    "Batches uses the same order with a single-rank DistributedSampler as with shuffle enabled") {
  const auto group = sconce::distributed::ProcessGroup::init();
  const sconce::data::DistributedSampler sampler(9, group, {.seed = 4});
  CHECK(order(Batches(counting(9), {.batch_size = 2, .sampler = sampler})) ==
        order(Batches(counting(9), {.batch_size = 2, .shuffle = true, .seed = 4})));
}

// A sampler that returns the rows in reverse order, starting at a different row in each epoch.
struct Backwards {
  int64_t of = 0;
  void set_epoch(int64_t epoch) { of = epoch; }
  int64_t epoch() const { return of; }
  int64_t dataset_size() const { return 4; }
  int64_t size() const { return 4; }
  torch::Tensor indices() const { return (torch::arange(4) + of).remainder(4).flip(0); }
};

TEST_CASE("Batches follows a custom sampler's order and starts at the sampler's epoch") {
  Batches batches(counting(4), {.batch_size = 2, .sampler = Backwards{.of = 1}});
  CHECK(order(batches) == std::vector<int64_t>{0, 3, 2, 1});
  CHECK(order(batches) == std::vector<int64_t>{1, 0, 3, 2});
  batches.set_epoch(0);
  CHECK(order(batches) == std::vector<int64_t>{3, 2, 1, 0});
  CHECK(order(batches) == std::vector<int64_t>{0, 3, 2, 1});
}

TEST_CASE("each new loop over Batches runs the next epoch in the same order as in Python") {
  Batches batches(counting(10), {.batch_size = 4, .shuffle = true});
  const auto expected = orders_of_python(10, 0);
  for (int64_t epoch = 0; epoch < 3; ++epoch) CHECK(order(batches) == expected.at(epoch));
  batches.set_epoch(1);
  for (int64_t epoch = 1; epoch < 3; ++epoch) CHECK(order(batches) == expected.at(epoch));
  CHECK(order(batches) != expected.at(2));
}

TEST_CASE("copies of Batches share the epoch count") {
  const auto expected = orders_of_python(10, 0);
  Batches batches(counting(10), {.batch_size = 4, .shuffle = true});
  const auto through_a_copy = [](Batches copy) { return order(copy); };
  CHECK(through_a_copy(batches) == expected.at(0));
  CHECK(through_a_copy(batches) == expected.at(1));
  CHECK(order(batches) == expected.at(2));
  Batches copy = batches;
  copy.set_epoch(1);
  CHECK(order(batches) == expected.at(1));
  CHECK(order(copy) == expected.at(2));
}

TEST_CASE("a nested loop over Batches runs a separate epoch, and both loops keep their order") {
  const auto expected = orders_of_python(10, 0);
  const Batches batches(counting(10), {.batch_size = 4, .shuffle = true});
  std::vector<int64_t> outer;
  int64_t inner = 0;
  for (auto [data, target] : batches) {
    const auto* rows = target.const_data_ptr<int64_t>();
    outer.insert(outer.end(), rows, rows + target.numel());
    if (++inner < 3) CHECK(order(batches) == expected.at(inner));
  }
  CHECK(outer == expected.at(0));
}

TEST_CASE("calling begin with an explicit epoch does not change the epoch of the next loop") {
  const auto expected = orders_of_python(10, 0);
  const Batches batches(counting(10), {.batch_size = 4, .shuffle = true});
  for (const int64_t epoch : {2, 0, 2}) {
    std::vector<int64_t> rows;
    auto place = batches.begin(1, epoch);
    CHECK(place.epoch() == epoch);
    for (; place != batches.end(); ++place) {
      const auto target = (*place).target;
      for (int64_t i = 0; i < target.size(0); ++i) rows.push_back(target[i].item<int64_t>());
    }
    const auto& all = expected.at(epoch);
    CHECK(rows == std::vector<int64_t>(all.begin() + 4, all.end()));
  }
  CHECK(batches.begin().epoch() == 0);
  CHECK(batches.begin().epoch() == 1);
  CHECK_THROWS_WITH(
      batches.begin(0, -1),
      ContainsSubstring("sconce::data::Batches::begin: expected epoch to be at least 0"));
  CHECK_THROWS_WITH(batches.begin(4, 0), ContainsSubstring("from 0 to 3, got 4"));
  CHECK(batches.begin().epoch() == 2);
}

TEST_CASE(
    "with a DistributedSampler, only set_epoch changes the order, and begin warns once if "
    "set_epoch was not called") {
  const sconce::test::Warnings warnings;
  const auto group = sconce::distributed::ProcessGroup::init();
  sconce::data::DistributedSampler sampler(9, group, {.seed = 4});
  sampler.set_epoch(3);
  Batches batches(counting(9), {.batch_size = 2, .sampler = sampler});
  const auto rows_of = [&](int64_t epoch) {
    sampler.set_epoch(epoch);
    const torch::Tensor rows = sampler.indices();
    return std::vector<int64_t>(rows.const_data_ptr<int64_t>(),
                                rows.const_data_ptr<int64_t>() + rows.numel());
  };
  CHECK(order(batches) == rows_of(3));
  batches.set_epoch(4);
  CHECK(order(batches) == rows_of(4));
  CHECK(warnings.messages().empty());
  CHECK(order(Batches(batches)) == rows_of(4));
  CHECK(order(batches) == rows_of(4));
  CHECK(*batches.begin(0, 7).operator*().target.const_data_ptr<int64_t>() == rows_of(7)[0]);
  batches.set_epoch(5);
  CHECK(order(batches) == rows_of(5));
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             StartsWith("sconce::data::Batches::begin: expected a call to"));
}

TEST_CASE("Batches never warns about set_epoch if its DistributedSampler does not shuffle") {
  const sconce::test::Warnings warnings;
  const auto group = sconce::distributed::ProcessGroup::init();
  const sconce::data::DistributedSampler sampler(5, group, {.shuffle = false});
  const Batches batches(counting(5), {.batch_size = 2, .sampler = sampler});
  for (int i = 0; i < 3; ++i) CHECK(order(batches) == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(warnings.messages().empty());
}

TEST_CASE(
    "Batches rejects a sampler whose size differs from the row count, and rejects any sampler if "
    "shuffle is enabled") {
  const sconce::data::RandomSampler sampler(9);
  const std::string who = "sconce::data::Batches: expected ";
  CHECK(refusal(counting(8), {.sampler = sampler}) ==
        who + "a sampler for 8 items (the number of items in the dataset), got a sampler for 9");
  CHECK(refusal(counting(9), {.shuffle = true, .sampler = sampler}) ==
        who + "either shuffle or a sampler (which sets the order), got both");
}

TEST_CASE("Batches rejects out-of-range rows from a sampler when the epoch begins") {
  struct Beyond : Backwards {
    torch::Tensor indices() const { return torch::arange(4) + of; }
  };
  const Batches batches(counting(4), {.batch_size = 2, .sampler = Beyond()});
  CHECK(order(batches) == std::vector<int64_t>{0, 1, 2, 3});
  CHECK_THROWS_WITH(
      batches.begin(),
      ContainsSubstring("Batches::begin: expected non-negative indices below 4 from the sampler, "
                        "got 4"));
}

TEST_CASE("an iterator may outlive its Batches, and copies of the iterator share its position") {
  const auto begin = [] {
    return Batches(counting(5), {.batch_size = 2, .shuffle = true, .seed = 1}).begin();
  };
  auto place = begin();
  const auto copy = place;
  const auto again = Batches(counting(5), {.batch_size = 2, .shuffle = true, .seed = 1}).begin();
  CHECK(torch::equal((*place).target, (*again).target));
  CHECK((*place).target.is_same((*copy).target));
  ++place;
  CHECK((*place).target.is_same((*copy).target));
  ++place;
  ++place;
  CHECK(copy == std::default_sentinel);
  CHECK_THROWS_WITH(*copy, ContainsSubstring("below 3, got 3, which is past the end of the epoch"));
  CHECK_THROWS_WITH(++place, ContainsSubstring("which is past the end of the epoch"));
  const auto& kept = *begin();  // belongs to a temporary iterator
  CHECK(torch::equal(kept.data, (*again).data));
}

TEST_CASE("a Batches iterator's arrow operator accesses the batch's tensors") {
  const Batches batches(counting(5), {.batch_size = 2});
  CHECK(batches.begin()->target.equal(torch::arange(2)));
  auto place = batches.begin();
  ++place;
  CHECK(place->data.is_same((*place).data));
  CHECK(place->target.equal(torch::arange(2, 4)));
}
