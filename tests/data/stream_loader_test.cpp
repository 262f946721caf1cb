#include "sconce/data/stream_loader.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::data::make_stream;
using sconce::data::ResumableStream;
using sconce::data::StreamLoader;
using sconce::data::StreamLoaderOptions;
using sconce::test::error_of;

// In pass p, returns 1000 p, 1000 p + 1, and so on. If the number of items is negative, every pass
// is infinite.
struct Counted {
  void set_epoch(int64_t number) { pass = number; }
  std::optional<torch::Tensor> next() {
    if (place == items) return {};
    ++*read;
    return torch::tensor(1000 * pass + place++);
  }

  int64_t items = 0;
  int64_t pass = 0;
  int64_t place = 0;
  std::shared_ptr<std::atomic<int64_t>> read = std::make_shared<std::atomic<int64_t>>(0);
};

// A Counted stream whose state can be saved.
struct CountedWithStates : Counted {
  c10::IValue state_dict() const { return place; }
  void load_state_dict(const c10::IValue& state) { place = state.toInt(); }
};

static_assert(!ResumableStream<Counted> && ResumableStream<CountedWithStates>);

// A stream that throws instead of returning number 4.
struct Failing : Counted {
  std::optional<torch::Tensor> next() {
    if (place == 4) throw std::runtime_error("no number 4");
    return Counted::next();
  }
};

// Appends the numbers in the batch, followed by a vertical bar.
template <class Iterator>
void append(std::string& text, const Iterator& place) {
  const torch::Tensor numbers = *place;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    text += " " + std::to_string(numbers[i].template item<int64_t>());
  }
  text += " |";
}

template <class DataLoader>
std::string rest(typename DataLoader::Iterator place, const DataLoader& loader) {
  std::string text;
  for (; !(place == loader.end()); ++place) append(text, place);
  return text;
}

template <class DataLoader>
std::string epoch_of(const DataLoader& loader) {
  return rest(loader.begin(), loader);
}

struct Script {
  StreamLoaderOptions options = {};
  int64_t items = 0, epochs = 0, epoch = 0, batch = 0;
  bool has_states = false, from_state = false;
  std::string expected = {};
};

std::istream& operator>>(std::istream& line, Script& script) {
  auto& options = script.options;
  line >> options.seed >> script.items >> options.batch_size >> options.batches_per_epoch >>
      options.shuffle_buffer >> options.num_replicas >> options.rank >> options.num_workers >>
      options.drop_last >> script.has_states >> script.epochs >> script.epoch >> script.batch >>
      script.from_state;
  return std::getline(line, script.expected);
}

// Runs the epochs and interrupts the run once.
template <class Stream>
std::string run(const Script& script) {
  const auto loader_of = [&] {
    Stream stream;
    stream.items = script.items;
    return StreamLoader(std::move(stream), script.options);
  };
  auto first = loader_of();
  std::string text;
  for (int64_t epoch = 0; epoch < script.epoch; ++epoch) text += epoch_of(first);
  c10::IValue state;
  {
    auto place = first.begin();
    for (int64_t batch = 0; batch < script.batch; ++batch, ++place) append(text, place);
    state = first.state_dict();
  }
  auto second = loader_of();
  if (script.from_state) second.load_state_dict(state);
  text += rest(second.begin(script.batch, script.epoch), second);
  second.set_epoch(script.epoch + 1);
  for (int64_t epoch = script.epoch + 1; epoch < script.epochs; ++epoch) text += epoch_of(second);
  return text;
}

int compare_with_python(const std::string& count) {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "stream_loader.py", count);
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    INFO(line);
    Script script;
    std::istringstream(line) >> script;
    CHECK((script.has_states ? run<CountedWithStates>(script) : run<Counted>(script)) ==
          script.expected);
  }
  return compared;
}

}  // namespace

TEST_CASE(
    "a StreamLoader returns the same batches as Python's loop, even when the loop is interrupted",
    "[python]") {
  CHECK(compare_with_python("100") == 100);
}

TEST_CASE(
    "500 StreamLoaders return the same batches as Python's loops, even when loops are interrupted",
    "[.][slow][python]") {
  CHECK(compare_with_python("500") == 500);
}

TEST_CASE("a StreamLoader continues from a state without reading earlier items") {
  const StreamLoaderOptions options{.batch_size = 3, .batches_per_epoch = 10, .shuffle_buffer = 4};
  StreamLoader first(CountedWithStates{{.items = -1}}, options);
  auto place = first.begin();
  for (int i = 0; i < 7; ++i, ++place) *place;  // 21 items: four for each of 5 batches, and 1
  const CountedWithStates numbers{{.items = -1}};
  StreamLoader second(numbers, options);
  second.load_state_dict(first.state_dict());
  auto resumed = second.begin(7, 0);
  CHECK(*numbers.read == 4);
  CHECK(torch::equal(*resumed, *place));
}

TEST_CASE("a StreamLoader reads each item of an endless stream only once across all epochs") {
  const auto workers = GENERATE(0, 2);
  const Counted numbers{.items = -1};
  const StreamLoader loader(numbers,
                            {.batch_size = 2, .batches_per_epoch = 3, .num_workers = workers});
  CHECK(epoch_of(loader) == " 0 1 | 2 3 | 4 5 |");
  CHECK(epoch_of(loader) == " 6 7 | 8 9 | 10 11 |");
  CHECK(*numbers.read == 12);
}

TEST_CASE(
    "after a state is loaded, a StreamLoader continues from that state instead of its last "
    "position") {
  const StreamLoaderOptions options{.batch_size = 2, .batches_per_epoch = 2};
  StreamLoader loader(CountedWithStates{{.items = -1}}, options);
  CHECK(epoch_of(loader) == " 0 1 | 2 3 |");
  CountedWithStates further{{.items = -1}};
  further.place = 50;
  StreamLoader other(further, options);
  CHECK(epoch_of(other) == " 50 51 | 52 53 |");
  loader.load_state_dict(other.state_dict());
  CHECK(epoch_of(loader) == " 54 55 | 56 57 |");
}

TEST_CASE("a StreamLoader over a C++20 range returns batches of the range's elements") {
  std::list<torch::Tensor> tensors;
  for (int64_t i = 0; i < 5; ++i) tensors.push_back(torch::full({2}, i, torch::kLong));
  const StreamLoader loader(make_stream(tensors), {.batch_size = 2});
  std::vector<torch::Tensor> batches;
  for (const auto& batch : loader) batches.push_back(batch);
  REQUIRE(batches.size() == 3);
  CHECK(torch::equal(batches[1], torch::tensor({{2, 2}, {3, 3}})));
  CHECK(torch::equal(batches[2], torch::tensor({{4, 4}})));
}

TEST_CASE("StreamLoader workers collate batches in parallel") {
  std::mutex mutex;
  std::condition_variable both;
  int inside = 0;
  bool have_met = true;
  const auto meet = [&](std::vector<torch::Tensor> items) {
    std::unique_lock lock(mutex);
    ++inside;
    both.notify_all();
    have_met &= both.wait_for(lock, std::chrono::minutes(1), [&] { return inside >= 2; });
    return torch::stack(items);
  };
  const StreamLoader loader(Counted{.items = 4}, {.batch_size = 2, .num_workers = 2}, meet);
  CHECK(epoch_of(loader) == " 0 1 | 2 3 |");
  CHECK(inside == 2);
  CHECK(have_met);
}

TEST_CASE(
    "an error in a stream ends the epoch and is thrown when the loop reaches the failed batch") {
  const auto workers = GENERATE(0, 1, 3);
  const auto steps = GENERATE(0, 5);
  const StreamLoader loader(Failing{{.items = -1}},
                            {.batch_size = 2, .batches_per_epoch = steps, .num_workers = workers});
  auto place = loader.begin();
  std::string text;
  append(text, place);
  append(text, ++place);
  CHECK(text == " 0 1 | 2 3 |");
  ++place;
  CHECK_THROWS_WITH(*place, "no number 4");
  CHECK_THROWS_WITH(++place, "no number 4");
  CHECK(place == loader.end());
}

TEST_CASE(
    "a StreamLoader rejects invalid options, streams with too few items, and invalid states") {
  const auto error = [](StreamLoaderOptions options) {
    return error_of([&] { StreamLoader(Counted{.items = 3}, options); });
  };
  CHECK_THAT(error({.batch_size = 0}), ContainsSubstring("batch_size to be at least 1, got 0"));
  CHECK_THAT(error({.batches_per_epoch = -1}),
             ContainsSubstring("batches_per_epoch to be at least 0"));
  CHECK_THAT(error({.shuffle_buffer = -1}), ContainsSubstring("shuffle_buffer to be at least 0"));
  CHECK_THAT(error({.num_workers = -1}), ContainsSubstring("num_workers to be at least 0, got -1"));
  CHECK_THAT(error({.prefetch_factor = 0}), ContainsSubstring("prefetch_factor to be at least 1"));
  CHECK_THAT(error({.num_replicas = 0}), ContainsSubstring("num_replicas to be at least 1, got 0"));
  CHECK_THAT(error({.num_replicas = 2, .rank = 2}), ContainsSubstring("a rank from 0 to 1, got 2"));
  CHECK_THAT(error({.batches_per_epoch = 2, .drop_last = true}),
             ContainsSubstring("drop_last to be false if batches_per_epoch is set"));
  const StreamLoader whole(Counted{.items = 3});
  CHECK_THAT(error_of([&] { whole.size(); }), ContainsSubstring("expected batches_per_epoch"));
  const StreamLoader empty(Counted{.items = 1}, {.batches_per_epoch = 2, .num_replicas = 2});
  CHECK_THAT(error_of([&] { *empty.begin(); }),
             ContainsSubstring("expected a stream of at least 2 items"));
  StreamLoader shorter(Counted{.items = 3}, {.shuffle_buffer = 4});
  shorter.load_state_dict([] {
    const StreamLoader longer(Counted{.items = 4}, {.shuffle_buffer = 4});
    auto place = longer.begin();
    for (int i = 0; i < 3; ++i, ++place) *place;
    return longer.state_dict();
  }());
  CHECK_THAT(error_of([&] { shorter.begin(3, 0); }),
             ContainsSubstring("a stream that returns as many items as before, got one that ends "
                               "in pass 0 before the loop's position (item 3)"));
  CHECK_THAT(error_of([&] { shorter.load_state_dict(1); }), ContainsSubstring("expected a dict"));
}
