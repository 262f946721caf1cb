#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/stream_loader.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "support/error_of.hpp"
#include "support/fitting.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::Dataset;
using sconce::data::StreamLoader;
using sconce::data::StreamLoaderOptions;
using sconce::test::Fitting;
using sconce::test::TempDir;

namespace {

// Returns the rows of a dataset one at a time, and counts the rows that were read.
struct Rows {
  std::optional<Dataset> next() {
    if (place == all.data.size(0)) return {};
    ++*read;
    const int64_t row = place++;
    return Dataset{all.data[row], all.target[row]};
  }
  c10::IValue state_dict() const { return place; }
  void load_state_dict(const c10::IValue& state) { place = state.toInt(); }

  Dataset all = sconce::test::points(50);
  int64_t place = 0;
  std::shared_ptr<int64_t> read = std::make_shared<int64_t>(0);
};

// A Rows stream without the functions that save and load its state.
struct PlainRows {
  std::optional<Dataset> next() { return rows.next(); }
  Rows rows = {};
};

const StreamLoaderOptions options{.batch_size = 4, .batches_per_epoch = 7, .shuffle_buffer = 6};

// Starts or resumes a fit, and stops it after the given step.
torch::Tensor fit(const TempDir& folder, sconce::AnyBatches train, int64_t stop) {
  torch::manual_seed(3);
  int64_t steps = 0;
  sconce::test::StopWhen stopping([&] { return ++steps == stop; });
  sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
  sconce::ModelCheckpoint saving(checkpoint);
  Fitting<sconce::optim::Adam> fitting({&stopping, &saving}, {std::move(train)}, 0.01);
  fitting.fit({.max_epochs = 3});
  return fitting.weight().clone();
}

template <class Stream>
void check_resumed_fits() {
  const auto noisy = [](StreamLoader<Stream> loader) {
    return sconce::data::TransformedBatches(
        std::move(loader), [](Dataset batch, const at::Generator& generator) {
          batch.data.add_(torch::rand(batch.data.sizes(), generator));
          return batch;
        });
  };
  const TempDir undisturbed;
  const auto expected = fit(undisturbed, noisy(StreamLoader(Stream(), options)), -1);
  for (const int64_t stop : {1, 6, 7, 8, 14, 20}) {
    CAPTURE(stop);
    const TempDir folder;
    fit(folder, noisy(StreamLoader(Stream(), options)), stop);
    CHECK(torch::equal(fit(folder, noisy(StreamLoader(Stream(), options)), -1), expected));
  }
}

}  // namespace

TEST_CASE("a stream fit that is stopped and resumed matches an uninterrupted fit") {
  check_resumed_fits<Rows>();
  check_resumed_fits<PlainRows>();
}

TEST_CASE("a resumed fit reads only the rows that its stream has not returned yet") {
  const TempDir folder;
  const Rows first, second;
  fit(folder, StreamLoader(first, options), 13);  // 52 rows: all, and 2 of 6 shuffled ones
  CHECK(*first.read == 56);
  fit(folder, StreamLoader(second, options), -1);
  CHECK(*second.read == 36);  // the same 6 again, up to 84 rows in total
}

TEST_CASE("a fit on a stream requires batches_per_epoch") {
  Fitting fitting({}, {StreamLoader(Rows())});
  CHECK_THAT(sconce::test::error_of([&] { fitting.fit(); }),
             ContainsSubstring("expected batches_per_epoch (a stream has no size), got none"));
}
