#include "sconce/data/data_loader.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batches.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::data::Batches;
using sconce::data::DataLoader;
using sconce::data::DataLoaderOptions;
using sconce::data::Dataset;

// Returns a dataset in which row i of the data is (2 i, 2 i + 1), and row i of the target is i.
Dataset table(int64_t rows) {
  return {torch::arange(2 * rows).reshape({rows, 2}), torch::arange(rows)};
}

struct Rows {
  Dataset all;
  int64_t size() const { return all.data.size(0); }
  Dataset get(int64_t i) const { return {all.data[i], all.target[i]}; }
};

// Item i draws i + 1 random numbers and uses the last one. If the items shared a generator, each
// number would depend on the items that were read before.
struct Noise {
  int64_t rows;
  int64_t size() const { return rows; }
  torch::Tensor get(int64_t i, at::Generator generator) const {
    return torch::randn({i + 1}, generator).narrow(0, i, 1) + 100 * i;
  }
};

template <class T>
std::vector<torch::Tensor> tensors(const T& batches) {
  std::vector<torch::Tensor> all;
  for (const auto& batch : batches) {
    sconce::nn::for_each_tensor(batch, [&](const torch::Tensor& tensor) { all.push_back(tensor); });
  }
  return all;
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return torch::equal(x, y); });
}

int64_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

TEST_CASE("DataLoader returns the same batches as Batches for any number of workers") {
  const auto workers = GENERATE(0, 1, 4);
  const auto shuffle = GENERATE(false, true);
  const auto drop_last = GENERATE(false, true);
  Batches expected(table(23), {.batch_size = 4, .shuffle = shuffle, .drop_last = drop_last});
  DataLoader loader(
      Rows{table(23)},
      {.batch_size = 4, .shuffle = shuffle, .num_workers = workers, .drop_last = drop_last});
  CHECK(loader.size() == expected.size());
  CHECK(same(tensors(loader), tensors(expected)));
  for (const int64_t epoch : {1, 0, 7}) {
    loader.set_epoch(epoch);
    expected.set_epoch(epoch);
    CHECK(same(tensors(loader), tensors(expected)));
  }
}

TEST_CASE("DataLoader returns the rows from each rank's sampler for any number of workers") {
  const auto workers = GENERATE(0, 1, 4);
  const auto group = sconce::distributed::ProcessGroup::init();
  for (const int rank : {0, 1}) {
    const sconce::data::DistributedSampler sampler(11, group,
                                                   {.num_replicas = 2, .rank = rank, .seed = 3});
    Batches expected(table(11), {.batch_size = 4, .sampler = sampler});
    DataLoader loader(Rows{table(11)},
                      {.batch_size = 4, .sampler = sampler, .num_workers = workers});
    for (const int64_t epoch : {0, 1}) {
      loader.set_epoch(epoch);
      expected.set_epoch(epoch);
      CHECK(same(tensors(loader), tensors(expected)));
    }
  }
}

TEST_CASE("with the same sampler, DataLoader returns the same batches as Python's DataLoader",
          "[python]") {
  const auto group = sconce::distributed::ProcessGroup::init();
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "loader.py", "batches");
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    std::istringstream words(line);
    int64_t rows = 0, epoch = 0;
    int replicas = 0, rank = 0;
    DataLoaderOptions options{.num_workers = compared % 3};
    sconce::data::DistributedSamplerOptions sampling;
    words >> rows >> replicas >> rank >> sampling.shuffle >> sampling.seed >> epoch >>
        options.batch_size >> options.drop_last;
    sampling.num_replicas = replicas;
    sampling.rank = rank;
    std::string expected;
    std::getline(words, expected);
    options.sampler = sconce::data::DistributedSampler(rows, group, sampling);
    DataLoader loader(Rows{table(rows)}, options);
    loader.set_epoch(epoch);
    std::ostringstream got;
    for (const auto& [data, target] : loader) {
      for (int64_t i = 0; i < target.size(0); ++i) got << ' ' << target[i].item<int64_t>();
      got << " |";
    }
    INFO(line);
    CHECK(got.str() == expected);
  }
  CHECK(compared == 64);
}

TEST_CASE("a source's random numbers depend only on the seed, the epoch, and the item") {
  const auto numbers = [](DataLoaderOptions options, int64_t epoch) {
    options.batch_size = 3;
    DataLoader loader(Noise{20}, options);
    loader.set_epoch(epoch);
    return std::get<0>(torch::cat(tensors(loader)).sort(0));
  };
  const auto expected = numbers({.seed = 5}, 2);
  torch::manual_seed(1);
  const auto next = torch::rand({4});
  torch::manual_seed(1);
  CHECK(torch::equal(numbers({.num_workers = 1, .seed = 5}, 2), expected));
  CHECK(torch::equal(numbers({.num_workers = 4, .seed = 5}, 2), expected));
  CHECK(torch::equal(numbers({.shuffle = true, .num_workers = 2, .seed = 5}, 2), expected));
  CHECK_FALSE(numbers({.seed = 6}, 2).eq(expected).any().item<bool>());
  CHECK_FALSE(numbers({.seed = 5}, 3).eq(expected).any().item<bool>());
  CHECK(torch::equal(torch::rand({4}), next));
}

TEST_CASE("a DataLoader can start an epoch at a later batch") {
  const auto workers = GENERATE(0, 2);
  DataLoader loader(Noise{20}, {.batch_size = 3, .shuffle = true, .num_workers = workers});
  const auto all = tensors(loader);
  int64_t index = 4;
  for (auto place = loader.begin(4, 0); place != loader.end(); ++place, ++index) {
    CHECK(torch::equal(*place, all.at(static_cast<size_t>(index))));
  }
  CHECK(index == 7);
  CHECK(loader.begin(7, 0) == loader.end());
  CHECK_THROWS_WITH(loader.begin(8, 0), ContainsSubstring("a batch index from 0 to 7, got 8"));
  CHECK_THROWS_WITH(loader.begin(-1, 0), ContainsSubstring("got -1"));
  CHECK_THROWS_WITH(loader.begin(0, -1), ContainsSubstring("epoch to be at least 0, got -1"));
  CHECK(loader.begin().epoch() == 1);
}

TEST_CASE(
    "leaving a loop over a DataLoader early ends the loop's threads, and the next loop starts "
    "over") {
  const auto workers = GENERATE(0, 1, 4);
  const DataLoader loader(Rows{table(1000)}, {.batch_size = 2, .num_workers = workers});
  const auto before = threads();
  for (int turn = 0; turn < 3; ++turn) {
    int64_t count = 0;
    for (const auto& [data, target] : loader) {
      CHECK(target[0].item<int64_t>() == 2 * count);
      CHECK(threads() == before + workers);
      if (++count == 3) break;
    }
    CHECK(threads() == before);
  }
  const auto unread = loader.begin();
  CHECK(threads() == before + workers);
}

TEST_CASE("batches skipped by a loop are not returned later") {
  const auto workers = GENERATE(0, 2);
  const DataLoader loader(Rows{table(10)}, {.num_workers = workers});
  auto place = loader.begin();
  ++place;
  place++;
  CHECK((*place).target.item<int64_t>() == 2);
  const auto copy = place;
  ++place;
  CHECK((*copy).target.item<int64_t>() == 3);  // copies share a position
}

namespace {

struct Strange {
  int code;
};

struct Broken {
  std::string kind;
  int64_t size() const { return 12; }
  torch::Tensor get(int64_t i) const {
    if (i == 7) {
      if (kind == "c10") TORCH_CHECK(false, "no picture");
      if (kind == "std") throw std::out_of_range("no such row");
      throw Strange{.code = 42};
    }
    return torch::tensor(i);
  }
};

// Reads batches until the loader throws. Returns the batch count and the exception.
template <class L>
std::pair<int, std::exception_ptr> until_error(const L& loader) {
  int count = 0;
  try {
    for (const auto& batch : loader) {
      CHECK(batch[0].template item<int64_t>() == 2 * count);
      ++count;
    }
  } catch (...) {
    return {count, std::current_exception()};
  }
  return {count, nullptr};
}

}  // namespace

TEST_CASE(
    "a DataLoader rethrows an item's exception with its type and message and reports the item") {
  const auto workers = GENERATE(0, 1, 4);
  const DataLoaderOptions options{.batch_size = 2, .num_workers = workers};
  const DataLoader torch_error(Broken{"c10"}, options);
  CHECK(torch_error.failed_item() == std::nullopt);
  auto [count, error] = until_error(torch_error);
  CHECK(count == 3);
  const auto text = sconce::test::error_of([&raised = error] { std::rethrow_exception(raised); });
  CHECK_THAT(text, ContainsSubstring("no picture") &&
                       ContainsSubstring("sconce::data::DataLoader: in item 7"));
  CHECK(torch_error.failed_item() == 7);

  const DataLoader standard(Broken{"std"}, options);
  error = until_error(standard).second;
  CHECK_THROWS_AS(std::rethrow_exception(error), std::out_of_range);
  CHECK_THROWS_WITH(std::rethrow_exception(error), "no such row");
  const DataLoader copy = standard;
  CHECK(copy.failed_item() == 7);

  const DataLoader any(Broken{"any"}, options);
  try {
    std::rethrow_exception(until_error(any).second);
  } catch (const Strange& strange) {
    CHECK(strange.code == 42);
  }
}

TEST_CASE(
    "skipping a batch rethrows any exception thrown by its items, and so does the next call") {
  const auto workers = GENERATE(0, 2);
  const DataLoader loader(Broken{"c10"}, {.num_workers = workers});
  auto place = loader.begin();
  for (int i = 0; i < 7; ++i) ++place;
  CHECK_THROWS_AS(++place, c10::Error);
  const auto text = sconce::test::error_of([&] { ++place; });
  CHECK_THAT(text, ContainsSubstring("in item 7"));
  const auto again = text.find("in item 7", text.find("in item 7") + 1);
  CHECK(again == std::string::npos);  // the text is added once
}

namespace {

// Throws for item `from` and every later item, using the item as the message.
struct FailsFrom {
  int64_t from;
  int64_t size() const { return 40; }
  torch::Tensor get(int64_t i) const {
    if (i >= from) throw std::out_of_range(std::to_string(i));
    return torch::tensor(i);
  }
};

// Reads the remaining batches in a loop. Returns the message of the exception that the loop throws.
template <class Place>
std::string text_of_rest(Place& place) {
  try {
    for (; !(place == std::default_sentinel); ++place) (void)*place;
  } catch (const std::out_of_range& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a loop reports the item that caused its exception even if a worker has read ahead") {
  const auto workers = GENERATE(0, 1, 4);
  for (int turn = 0; turn < 100; ++turn) {
    const DataLoader loader(FailsFrom{turn % 30},
                            {.batch_size = 2, .shuffle = turn % 2 == 1, .num_workers = workers});
    auto place = loader.begin(0, turn);
    CHECK(place.failed_item() == std::nullopt);
    const auto text = text_of_rest(place);
    REQUIRE(place.failed_item().has_value());
    CHECK(std::to_string(*place.failed_item()) == text);
    CHECK(loader.failed_item() == place.failed_item());
  }
}

TEST_CASE("nested and concurrent loops over a DataLoader each report their own failed item") {
  const auto workers = GENERATE(0, 2);
  const DataLoader loader(FailsFrom{3}, {.shuffle = true, .num_workers = workers});
  const auto check = [](const auto& of, int64_t epoch) {
    auto place = of.begin(0, epoch);
    const auto copy = place;
    const auto text = text_of_rest(place);
    return text == std::to_string(copy.failed_item().value_or(-1));
  };
  auto outer = loader.begin(0, 1);
  const auto text = text_of_rest(outer);
  CHECK(check(loader, 2));
  CHECK(check(DataLoader(loader), 3));
  CHECK(std::to_string(outer.failed_item().value_or(-1)) == text);
  CHECK_THROWS_WITH(*outer, text);
  CHECK(loader.failed_item() == outer.failed_item());  // the exception that was thrown last
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] { right += check(loader, 10 + thread) ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == 4);
}

TEST_CASE("no failed item is reported if the collate function throws") {
  const auto workers = GENERATE(0, 2);
  const auto collate = [](const std::vector<torch::Tensor>& items) {
    if (items.at(0).item<int64_t>() == 4) throw Strange{.code = 1};
    return items.at(0);
  };
  const DataLoader loader(FailsFrom{6}, {.batch_size = 2, .num_workers = workers}, collate);
  CHECK_THROWS_AS(*loader.begin(3, 0), std::out_of_range);
  CHECK(loader.failed_item() == 6);
  auto place = loader.begin(2, 0);
  CHECK_THROWS_AS(*place, Strange);
  CHECK_THROWS_AS(++place, Strange);
  CHECK(place == loader.end());
  CHECK(place.failed_item() == std::nullopt);
  CHECK(loader.failed_item() == std::nullopt);
}

namespace {

// Returns the batches for an epoch in the order determined by the seeds from Python.
std::vector<torch::Tensor> epoch_of(const Dataset& all, int64_t batch_size, uint64_t epoch) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(epoch);
  std::vector<torch::Tensor> batches;
  for (const auto& rows :
       torch::randperm(all.data.size(0), generator, torch::kLong).split(batch_size)) {
    batches.push_back(all.data.index_select(0, rows));
    batches.push_back(all.target.index_select(0, rows));
  }
  return batches;
}

}  // namespace

TEST_CASE(
    "a source draws new random numbers in each epoch or, with a DistributedSampler, only after "
    "set_epoch is called") {
  const auto workers = GENERATE(0, 2);
  const sconce::test::Warnings warnings;
  DataLoaderOptions options{.batch_size = 3, .num_workers = workers};
  const auto drawn = [](const auto& loader) {
    return std::get<0>(torch::cat(tensors(loader)).sort(0));
  };
  const DataLoader plain(Noise{20}, options);
  const auto first = drawn(plain), second = drawn(plain);
  CHECK_FALSE(first.eq(second).any().item<bool>());
  CHECK(warnings.messages().empty());

  sconce::data::DistributedSampler sampler(20, sconce::distributed::ProcessGroup::init());
  sampler.set_epoch(1);
  options.sampler = sampler;
  DataLoader loader(Noise{20}, options);
  CHECK(torch::equal(drawn(loader), second));  // the items use the sampler's epoch
  CHECK(torch::equal(drawn(loader), second));
  loader.set_epoch(0);
  CHECK(torch::equal(drawn(loader), first));
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             ContainsSubstring("sconce::data::DataLoader::begin: expected a"));
}

TEST_CASE(
    "nested and concurrent loops over a DataLoader do not interfere with each other and may "
    "outlive the DataLoader") {
  const auto workers = GENERATE(0, 2);
  const Dataset rows = table(12);
  auto loader = std::make_unique<DataLoader<Rows>>(
      Rows{rows}, DataLoaderOptions{.batch_size = 3, .shuffle = true, .num_workers = workers});
  const auto expected = epoch_of(rows, 3, 0);
  size_t outer = 0;
  for (const auto& batch : *loader) {
    CHECK(torch::equal(batch.target, expected[2 * outer++ + 1]));
    CHECK(same(tensors(*loader), epoch_of(rows, 3, outer)));
  }
  loader->set_epoch(0);
  std::vector<std::vector<torch::Tensor>> of_threads(2);
  std::vector<std::thread> loops;
  for (auto& got : of_threads) loops.emplace_back([&] { got = tensors(*loader); });
  for (auto& loop : loops) loop.join();
  const size_t one = same(of_threads[0], expected) ? 0 : 1;  // either thread may have been first
  CHECK(same(of_threads[one], expected));
  CHECK(same(of_threads[1 - one], epoch_of(rows, 3, 1)));

  loader->set_epoch(0);
  auto place = loader->begin();
  loader->set_epoch(5);
  DataLoader moved = std::move(*loader);
  loader.reset();
  for (size_t i = 0; place != moved.end(); ++place, i += 2) {
    CHECK(torch::equal((*place).data, expected[i]));
  }
  CHECK(same(tensors(moved), epoch_of(rows, 3, 5)));
}

namespace {

// Checks that the loader does not start loading batches too far ahead of the loop's requests.
struct Ahead {
  std::shared_ptr<std::atomic<int64_t>> asked = std::make_shared<std::atomic<int64_t>>(0);
  int64_t most = 0;
  int64_t size() const { return 400; }
  torch::Tensor get(int64_t i) const { return torch::tensor(i / 2 < *asked + most); }
};

}  // namespace

TEST_CASE("a DataLoader prefetches at most num_workers times prefetch_factor batches") {
  const auto workers = GENERATE(1, 3);
  const Ahead source{.most = workers * 2};
  const DataLoader loader(source, {.batch_size = 2, .num_workers = workers, .prefetch_factor = 2});
  for (auto place = loader.begin(); place != loader.end(); ++place) {
    ++*source.asked;
    CHECK((*place).all().item<bool>());
  }
  CHECK(*source.asked == 200);
}

namespace {

struct WithState {
  int64_t size() const { return 4; }
  std::pair<torch::Tensor, torch::Tensor> get(int64_t) const {
    const auto weight = torch::ones({1}, torch::requires_grad());
    return {torch::tensor((weight * 2).requires_grad()), torch::tensor(at::get_num_threads())};
  }
};

}  // namespace

TEST_CASE(
    "workers inherit the thread-local state of the loop's thread and each use one LibTorch "
    "thread") {
  const auto threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto workers = GENERATE(1, 3);
  const DataLoader loader(WithState{}, {.num_workers = workers});
  for (const auto& [grad, count] : loader) {
    CHECK(grad.item<bool>());
    CHECK(count.item<int64_t>() == 1);
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [grad, count] : loader) CHECK_FALSE(grad.item<bool>());
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(threads);
}

TEST_CASE("a custom collate function builds batches of any type") {
  struct Words {
    int64_t size() const { return 5; }
    std::pair<torch::Tensor, torch::Tensor> get(int64_t i) const {
      return {torch::full({i + 1}, i), torch::tensor(i)};
    }
  };
  const auto sum = [](const std::vector<std::pair<torch::Tensor, torch::Tensor>>& items) {
    torch::Tensor total = torch::zeros({}, torch::kLong);
    for (const auto& item : items) total += item.first.sum();
    return total;
  };
  const DataLoader sums(Words{}, {.batch_size = 3, .num_workers = 2}, sum);
  CHECK(same(tensors(sums), {torch::tensor(0 + 2 + 6), torch::tensor(12 + 20)}));

  const DataLoader padded(Words{}, {.batch_size = 2},
                          sconce::data::PadSequence{.padding_value = -1});
  const auto [words, lengths] = *padded.begin(1, 0);
  CHECK(torch::equal(words, torch::tensor({{2, 2, 2, -1}, {3, 3, 3, 3}})));
  CHECK(torch::equal(lengths, torch::tensor({2, 3})));
}

namespace {

struct TorchRows : torch::data::Dataset<TorchRows> {
  torch::data::Example<> get(size_t i) override {
    ++calls;  // counts calls to this copy
    return {torch::full({2}, static_cast<int64_t>(i)), torch::tensor(static_cast<int64_t>(10 * i))};
  }
  std::optional<size_t> size() const override { return 7; }
  int calls = 0;
};

struct Endless : TorchRows {
  std::optional<size_t> size() const override { return std::nullopt; }
};

}  // namespace

TEST_CASE("DataLoader accepts both mapped and unmapped torch::data datasets") {
  const auto workers = GENERATE(0, 3);
  const DataLoaderOptions options{.batch_size = 4, .num_workers = workers};
  const std::vector<torch::Tensor> expected = {
      torch::tensor({{0, 0}, {1, 1}, {2, 2}, {3, 3}}), torch::tensor({0, 10, 20, 30}),
      torch::tensor({{4, 4}, {5, 5}, {6, 6}}), torch::tensor({40, 50, 60})};
  CHECK(same(tensors(DataLoader(TorchRows(), options)), expected));
  const auto twice = [](torch::data::Example<> example) {
    return torch::data::Example<>(example.data, 2 * example.target);
  };
  auto mapped = TorchRows().map(torch::data::transforms::Lambda<torch::data::Example<>>(twice));
  auto got = tensors(DataLoader(mapped, options));
  CHECK(torch::equal(got.at(3), torch::tensor({80, 100, 120})));
  auto stacked = std::move(mapped).map(torch::data::transforms::Stack<>());
  CHECK(same(tensors(DataLoader(stacked, options)), got));
  CHECK_THROWS_WITH(DataLoader(Endless(), options),
                    ContainsSubstring("expected a dataset with a known size"));
}

namespace {

struct Stateful : torch::data::datasets::BatchDataset<Stateful, std::optional<std::vector<int>>> {
  std::optional<std::vector<int>> get_batch(c10::ArrayRef<size_t>) override { return {}; }
  std::optional<size_t> size() const override { return {}; }
};
struct NotConst {
  int64_t size() const { return 0; }
  torch::Tensor get(int64_t) { return {}; }
};
struct NoTensors {
  int64_t size() const { return 0; }
  int get(int64_t) const { return 0; }
};
static_assert(sconce::data::ItemSource<Rows> && sconce::data::ItemSource<Noise>);
static_assert(!sconce::data::ItemSource<NotConst> && !sconce::data::ItemSource<NoTensors>);
static_assert(!sconce::data::ItemSource<TorchRows> && sconce::data::TorchDataset<TorchRows>);
static_assert(sconce::data::StatefulTorchDataset<Stateful>);
static_assert(!sconce::data::StatefulTorchDataset<TorchRows>);
static_assert(!sconce::data::StatefulTorchDataset<Rows>);
static_assert(std::input_iterator<DataLoader<Rows>::Iterator>);
static_assert(sconce::BatchSource<DataLoader<Rows>>);

struct Wrong {
  int64_t epoch = 0;
  torch::Tensor rows;
  void set_epoch(int64_t to) { epoch = to; }
  int64_t dataset_size() const { return 4; }
  int64_t size() const { return 3; }
  torch::Tensor indices() const { return rows; }
};

}  // namespace

TEST_CASE("DataLoader rejects invalid options before reading an item") {
  const auto refusal = [](DataLoaderOptions options) {
    return sconce::test::error_of([&] { const DataLoader loader(Broken{"any"}, options); });
  };
  const std::string who = "sconce::data::DataLoader: expected ";
  CHECK(refusal({.batch_size = 0}) == who + "batch_size to be at least 1, got 0");
  CHECK(refusal({.num_workers = -1}) == who + "num_workers to be at least 0, got -1");
  CHECK(refusal({.prefetch_factor = 0}) == who + "prefetch_factor to be at least 1, got 0");
  CHECK_THAT(refusal({.shuffle = true, .sampler = sconce::data::RandomSampler(12)}),
             ContainsSubstring("expected either shuffle or a sampler"));
  CHECK_THAT(refusal({.sampler = sconce::data::RandomSampler(9)}),
             ContainsSubstring("expected a sampler for 12 items (the number of items in the "
                               "dataset), got a sampler for 9"));
  DataLoader loader(Broken{"any"});
  CHECK_THROWS_WITH(loader.set_epoch(-1), ContainsSubstring("epoch to be at least 0, got -1"));
}

TEST_CASE("DataLoader rejects out-of-range or missing items from a sampler when the epoch begins") {
  const auto refusal = [](const torch::Tensor& rows) {
    return sconce::test::error_of(
        [&] { DataLoader(Rows{table(4)}, {.sampler = Wrong{.epoch = 0, .rows = rows}}).begin(); });
  };
  CHECK_THAT(refusal(torch::tensor({0, 1, 4})),
             ContainsSubstring("below 4 from the sampler, got 4"));
  CHECK_THAT(refusal(torch::tensor({0, 1, -1})),
             ContainsSubstring("below 4 from the sampler, got -1"));
  CHECK_THAT(refusal(torch::tensor({0, 1})),
             ContainsSubstring("3 items from the sampler (as reported by its"));
  const DataLoader loader(
      Rows{table(4)},
      {.batch_size = 3,
       .sampler = Wrong{.epoch = 0, .rows = torch::tensor({2, 0, 2}, torch::kInt)}});
  CHECK(torch::equal((*loader.begin()).target, torch::tensor({2, 0, 2})));
}

namespace {

struct Racy {
  std::shared_ptr<int64_t> calls = std::make_shared<int64_t>(0);
  int64_t size() const { return 2000; }
  torch::Tensor get(int64_t) const { return torch::tensor(++*calls); }
};

}  // namespace

TEST_CASE(
    "if multiple workers read a source that is not thread-safe, ThreadSanitizer reports the race",
    "[.planted-race]") {
  CHECK(tensors(DataLoader(Racy(), {.batch_size = 4, .num_workers = 4})).size() == 500);
}

TEST_CASE("a DataLoader over an empty source returns no batches") {
  const auto workers = GENERATE(0, 2);
  DataLoader loader(Rows{table(0)}, {.batch_size = 4, .shuffle = true, .num_workers = workers});
  CHECK(loader.size() == 0);
  CHECK(tensors(loader).empty());
}

TEST_CASE("DataLoader copies batches to the requested device") {
  const DataLoader loader(
      Rows{table(4)}, {.batch_size = 4, .num_workers = 1, .device = torch::Device(torch::kMeta)});
  CHECK((*loader.begin()).data.is_meta());
}

TEST_CASE("on a GPU, DataLoader copies complete batches on a separate stream", "[gpu]") {
  sconce::test::require_gpu();
  const auto workers = GENERATE(0, 2);
  const Dataset host{torch::rand({200, 10000}), torch::arange(200)};
  const DataLoader loader(Rows{host},
                          {.batch_size = 20, .num_workers = workers, .device = sconce::gpu()});
  int64_t start = 0;
  for (const auto& [data, target] : loader) {
    CHECK(data.device() == sconce::gpu());
    CHECK(torch::equal(data.cpu(), host.data.narrow(0, start, 20)));
    CHECK(torch::equal(target.cpu(), host.target.narrow(0, start, 20)));
    start += 20;
  }
  CHECK(start == 200);
  CHECK(sconce::data::Stack{.pin_memory = true}.tensors({host.data[0]}).is_pinned());
}

TEST_CASE(
    "on a GPU, all loops over a DataLoader and its copies share one stream, acquired by the first "
    "loop",
    "[gpu]") {
  sconce::test::require_gpu();
  const c10::impl::VirtualGuardImpl gpus(torch::kCUDA);
  const auto next = [&] { return gpus.getStreamFromGlobalPool(sconce::gpu()); };
  const auto first = next();
  // LibTorch returns the streams from its pool in round-robin order.
  const auto until_first = [&] {
    int64_t count = 1;
    while (next() != first) ++count;
    return count;
  };
  const auto all = until_first();
  const DataLoader loader(Rows{table(40)},
                          {.batch_size = 4, .num_workers = 2, .device = sconce::gpu()});
  const DataLoader copy = loader;
  CHECK(until_first() == all);
  for (int epoch = 0; epoch < 2; ++epoch) CHECK(tensors(loader).size() == 20);
  std::thread loop([&] { tensors(loader); });
  CHECK(tensors(copy).size() == 20);
  loop.join();
  CHECK(until_first() == all - 1);
}

TEST_CASE("on a GPU, DataLoader copies to the current GPU if the device has no index", "[gpu]") {
  sconce::test::require_gpu();
  const auto workers = GENERATE(0, 2);
  const Dataset rows = table(8);
  const DataLoader loader(
      Rows{rows}, {.batch_size = 8, .num_workers = workers, .device = torch::Device(torch::kCUDA)});
  for (const int index : {0, sconce::num_gpus() - 1, 0}) {
    const c10::DeviceGuard guard(sconce::gpu(index));
    const auto [data, target] = *loader.begin();
    CHECK(data.device() == sconce::gpu(index));
    CHECK(data.cpu().equal(rows.data));
  }
}

namespace {

// A dataset in which items have different types or require a gradient.
struct Unlike {
  bool requires_grad = false;
  int64_t size() const { return 4; }
  torch::Tensor get(int64_t i) const {
    if (requires_grad) return torch::full({3}, double(i), torch::requires_grad());
    return torch::full({3}, double(i) / 3, i % 2 == 0 ? torch::kFloat : torch::kDouble);
  }
};

}  // namespace

TEST_CASE("on a GPU, DataLoader stacks items of mixed types the same way as on the CPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto requires_grad = GENERATE(false, true);
  const auto workers = GENERATE(0, 2);
  DataLoaderOptions options{.batch_size = 4, .num_workers = workers};
  const Unlike items{requires_grad};
  const auto expected = *DataLoader(items, options).begin();
  options.device = sconce::gpu();
  const auto got = *DataLoader(items, options).begin();
  CHECK(got.device() == sconce::gpu());
  CHECK(got.scalar_type() == expected.scalar_type());
  CHECK(got.requires_grad() == requires_grad);
  CHECK(got.cpu().equal(expected));
}
