#include "sconce/distributed/distributed_data_parallel.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "catch.hpp"
#include "distributed/training.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/transformer.hpp"
#include "sconce/training/checkpoint.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/of_distribution.hpp"
#include "support/one_with_gloo.hpp"
#include "support/processes.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Matches;
using sconce::distributed::ProcessGroup;
using sconce::nn::CommHook;
using sconce::nn::DistributedDataParallel;
using sconce::nn::DistributedDataParallelOptions;
using sconce::test::ask_python;
using sconce::test::contents;
using sconce::test::one_with_gloo;
using sconce::test::Processes;
using sconce::test::require_gpu;
using sconce::test::Seconds;
using sconce::test::start_ranks;
using sconce::test::TempDir;
using sconce::test::wait_for;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> found;
  for (std::string word; std::getline(in, word, ',');) found.push_back(word);
  return found;
}

// Runs the comma-separated training cases in a single group of `size` ranks, and checks that all
// ranks write the same parameters. Returns the output for each case.
std::map<std::string, std::string> train(const std::string& cases, int size,
                                         const std::string& more = "joined=1") {
  const TempDir folder;
  const auto out = [&](int rank) { return (folder.path() / std::to_string(rank)).string(); };
  Processes ranks;
  const std::string port = sconce::test::free_port();
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<sconce::test::Process>(
        std::vector<std::string>{SCONCE_WORKER, "train", "cases=" + cases, "out=" + out(rank),
                                 more},
        sconce::test::rank_variables(rank, size, port)));
  }
  wait_for(ranks, Seconds(90));
  std::map<std::string, std::string> written;
  for (int rank = 0; rank < size; ++rank) {
    INFO("rank " << rank << ": " << ranks[rank]->err());
    REQUIRE(ranks[rank]->exit_code == 0);
    for (const auto& name : words(cases)) {
      const std::string own = contents(out(rank) + "." + name);
      if (rank == 0) written[name] = own;
      REQUIRE(own.size() > 100);
      CHECK((own == written[name].substr(0, own.size())));
    }
  }
  return written;
}

// Returns the parameters, which come after the first two lines in the output for a model without
// buffers.
torch::Tensor parameters(const std::string& written) {
  const auto start = written.find('\n', written.find('\n') + 1) + 1;
  const auto bytes = static_cast<int64_t>(written.size() - start);
  return torch::from_blob(const_cast<char*>(written.data()) + start, {bytes / 4}, torch::kFloat)
      .clone();
}

std::string lines(const std::string& written) {
  return written.substr(0, written.find('\n', written.find('\n') + 1) + 1);
}

// For each digit in `sizes`, runs the training cases with that many processes, both in C++ and in
// Python, and compares the results.
void check_against_python(const std::string& cases, const std::string& sizes) {
  const TempDir folder;
  const std::string what = cases + "-" + sizes;
  ask_python(folder, "distributed.py", what);
  for (const char size : sizes) {
    for (const auto& [name, written] : train(cases, size - '0')) {
      INFO(name << " in " << size << " processes");
      const auto expected = contents(folder.path() / (what + "." + name + "." + size));
      CHECK(lines(written) == lines(expected));
      CHECK((written == expected));
    }
  }
}

std::string refusal(const std::shared_ptr<torch::nn::Module>& module,
                    DistributedDataParallelOptions options = {}) {
  return sconce::test::error_of([&] {
    const sconce::nn::detail::DistributedCore core(module, ProcessGroup::init(), options);
  });
}

}  // namespace

TEST_CASE("DistributedDataParallel matches Python bit for bit with two and three processes",
          "[distributed][python]") {
  const std::string bf16 = sconce::test::gloo_reduces_16_bits() ? ",bf16" : "";
  check_against_python("mlp,cnn,unused,no_sync" + bf16, "23");
  sconce::test::require_gloo_of_16_bits();
}

TEST_CASE(
    "DistributedDataParallel matches Python bit for bit with two processes and additional options",
    "[distributed][python]") {
  const std::string fp16 = sconce::test::gloo_reduces_16_bits() ? ",fp16" : "";
  check_against_python("wide,small,outputs,static,sparse,checkpointed,amp" + fp16, "2");
  sconce::test::require_gloo_of_16_bits();
}

TEST_CASE("two processes match one process that trains on the combined batch", "[distributed]") {
  auto two = train("mlp,no_sync", 2);
  auto joined = train("mlp,no_sync", 1, "joined=2");
  auto one = train("mlp,no_sync", 1);
  for (const std::string name : {"mlp", "no_sync"}) {
    const auto apart = parameters(two[name]), together = parameters(joined[name]);
    INFO(name << ": " << (apart - together).abs().max());
    CHECK(torch::allclose(apart, together, 1.3e-6, 5e-5));
    CHECK_FALSE(torch::allclose(apart, parameters(one[name]), 1.3e-6, 5e-5));
  }
}

TEST_CASE(
    "the Trainer rejects from_torch batches, a different process group, and arguments that differ "
    "between ranks",
    "[distributed]") {
  auto ranks = start_ranks(2, {SCONCE_WORKER, "uneven", "victim=1", "timeout=20000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    CHECK(rank->exit_code == 1);
    CHECK_THAT(rank->err(), ContainsSubstring("sconce::Trainer::fit: expected as many training "
                                              "batches on every rank, got 4 on rank 0 and 5 on "
                                              "rank 1"));
    for (const std::string call : {"0", "1", "2"}) {
      CHECK_THAT(
          rank->err(),
          ContainsSubstring(
              call +
              " sconce::data::from_torch: expected a process group of one rank, got a group of 2"));
    }
    const bool is_first = rank == ranks[0];
    const std::string of_other =
        "expected arguments that every rank accepts, but rank 1 rejected its own";
    const std::map<std::string, std::string> refused = {
        {"3", "expected as many epochs on every rank, got 2 on rank 0 and 3 on rank 1"},
        {"4", "expected as many sets of test data on every rank, got 1 on rank 0 and 0 on rank 1"},
        {"5", "expected test data, got no batch"},
        {"6", is_first ? of_other : "expected callbacks, got null at position 1 of 1"},
        {"7",
         "expected TrainerOptions::process_group to be the DistributedDataParallel process group "
         "(2 ranks), got a different process group of size 1"},
        {"10", "expected as many compilers on every rank, got 1 on rank 0 and 0 on rank 1"},
        {"9", is_first ? of_other : "expected stateful callbacks to have unique names"}};
    for (const auto& [call, why] : refused) {
      CHECK_THAT(rank->err(), ContainsSubstring(call + " sconce::Trainer::fit: " + why));
    }
    CHECK_THAT(rank->err(), ContainsSubstring(is_first ? "8 sconce::Trainer::fit: " + of_other
                                                       : "8 sconce::EarlyStopping: expected"));
    CHECK_THAT(rank->err(), !ContainsSubstring("has trained"));
  }
}

TEST_CASE(
    "in a multi-rank process group, the Trainer accepts only a model wrapped in "
    "DistributedDataParallel",
    "[distributed]") {
  auto ranks = start_ranks(2, {SCONCE_WORKER, "unwrapped", "timeout=20000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    CHECK(rank->exit_code == 1);
    CHECK_THAT(
        rank->err(),
        ContainsSubstring("sconce::Trainer::fit: expected a sconce::nn::DistributedDataParallel in "
                          "a process group of several ranks"));
  }
}

TEST_CASE(
    "all ranks throw immediately if one rank does not wrap its model in DistributedDataParallel",
    "[distributed]") {
  auto ranks = start_ranks(2, {SCONCE_WORKER, "one_unwrapped", "timeout=20000"});
  wait_for(ranks, Seconds(60));
  const std::string mixed[] = {
      "0 sconce::nn::DistributedDataParallel: expected the same call on every rank, got "
      "sconce::Trainer::fit on rank 1",
      "0 sconce::Trainer::fit: expected a sconce::nn::DistributedDataParallel in a process group "
      "of "};
  const std::string frozen[] = {
      "1 sconce::nn::DistributedDataParallel: expected arguments that every rank accepts, but rank "
      "1 rejected its own",
      "1 sconce::nn::DistributedDataParallel: expected a module with at least one parameter that "
      "requires"};
  for (size_t rank = 0; rank < 2; ++rank) {
    const std::string err = ranks[rank]->err();
    INFO(err);
    CHECK(ranks[rank]->exit_code == 0);
    CHECK_THAT(err, ContainsSubstring(mixed[rank]));
    CHECK_THAT(err, ContainsSubstring(frozen[rank]));
    const std::string other =
        "expected TrainerOptions::process_group to be the DistributedDataParallel process group (2 "
        "ranks), got a different process group of size 1";
    CHECK_THAT(err, ContainsSubstring("2 sconce::Trainer::evaluate: " + other));
    CHECK_THAT(err, ContainsSubstring("3 sconce::Trainer::predict: " + other));
    CHECK_THAT(
        err, ContainsSubstring(
                 "4 sconce::Trainer::evaluate: expected the same broadcast_buffers on every rank"));
    CHECK_THAT(
        err, ContainsSubstring("5 sconce::Trainer::predict: expected the same broadcast_buffers"));
    CHECK_THAT(err, ContainsSubstring(
                        "6 sconce::Trainer::" + std::string(rank == 0 ? "evaluate" : "predict") +
                        ": expected the same call on every rank"));
    CHECK_THAT(err, !ContainsSubstring("no error"));
  }
}

namespace {

// Runs the worker on the given number of ranks, checks that all ranks print the same output, and
// returns the output.
std::string output_of_ranks(int ranks, std::vector<std::string> words) {
  words.insert(words.begin(), SCONCE_WORKER);
  words.push_back("timeout=20000");
  auto all = start_ranks(ranks, words);
  wait_for(all, Seconds(60));
  for (const auto& rank : all) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
    CHECK(rank->out() == all[0]->out());
  }
  return all[0]->out();
}

// Trains with the model's custom step and returns the output.
std::string train_own_step(int ranks, const std::string& stop) {
  return output_of_ranks(ranks, {"own_step", "stop=" + stop});
}

}  // namespace

TEST_CASE("two processes that train a model with a custom training step match one process",
          "[distributed]") {
  std::istringstream two(train_own_step(2, "0")), one(train_own_step(1, "0"));
  std::string line, expected_line;
  std::getline(two, line);
  std::getline(one, expected_line);
  CHECK(line == "epochs: 3");
  CHECK(expected_line == line);
  int count = 0;
  for (double value = 0, expected = 0; two >> value && one >> expected; ++count) {
    CHECK(value == Catch::Approx(expected).epsilon(1e-4));
  }
  CHECK(count == 3 + 6);
}

TEST_CASE("if one rank requests a stop, all ranks stop at the same saved step", "[distributed]") {
  // Each epoch has four steps. The state of each rank is saved every two steps.
  CHECK_THAT(train_own_step(2, "1"), ContainsSubstring("epochs: 0\n"));
  CHECK_THAT(train_own_step(2, "3"), ContainsSubstring("epochs: 1\n"));
  CHECK_THAT(train_own_step(2, "5"), ContainsSubstring("epochs: 1\n"));
}

TEST_CASE("a signal on one rank stops all ranks at the same saved step", "[distributed]") {
  const TempDir folder;
  auto ranks = start_ranks(
      2, {SCONCE_WORKER, "signal_in_fit", "out=" + folder.path().string(), "timeout=20000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
  }
  const std::string file = "checkpoint-000002-00000002.pt\n";
  CHECK(ranks[0]->out() == "2 epochs, rank 1 stopped the fit, signal 0, " + file);
  CHECK(ranks[1]->out() == "2 epochs, SIGUSR1 arrived, signal 10, " + file);
}

TEST_CASE(
    "a second signal while StopOnSignal is saving terminates the process and leaves complete files",
    "[distributed]") {
  const TempDir folder;
  const std::string out = "out=" + folder.path().string();
  auto ranks = start_ranks(1, {SCONCE_WORKER, "signal_in_fit", out, "again=1"});
  wait_for(ranks, Seconds(60));
  CHECK(ranks[0]->killed_by == SIGUSR1);
  sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
  CHECK(checkpoint.latest().filename() == "checkpoint-000002-00000000.pt");
  const auto saved = sconce::io::load_torch(checkpoint.latest()).toGenericDict();
  CHECK(saved.at("epoch").toInt() == 2);
}

TEST_CASE("each rank's stream continues where a stopped fit left off", "[distributed]") {
  const auto fit = [](const TempDir& folder, const std::string& stop) {
    return output_of_ranks(2, {"stream", "out=" + folder.path().string(), "stop=" + stop});
  };
  const TempDir undisturbed, stopped;
  const auto expected = fit(undisturbed, "0");
  CHECK(fit(stopped, "8") != expected);
  CHECK(fit(stopped, "0") == expected);
}

namespace {

// Runs the worker on the given number of ranks, checks that all ranks print the same output, and
// returns the words in the output.
std::vector<std::string> words_of_ranks(int ranks, const std::string& mode,
                                        const std::string& option = "") {
  std::istringstream words(output_of_ranks(ranks, {mode, option}));
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

TEST_CASE("two processes produce the same step values and test values as one process",
          "[distributed]") {
  const auto two = words_of_ranks(2, "values"), one = words_of_ranks(1, "values");
  REQUIRE(two.size() == one.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < one.size(); i += 2) {
    CHECK(two[i] == one[i]);
    CAPTURE(one[i]);
    CHECK(std::stod(two[i + 1]) == Catch::Approx(std::stod(one[i + 1])).epsilon(1e-4));
    names.push_back(one[i]);
  }
  names.resize(names.size() / 2);
  CHECK(names == std::vector<std::string>{"loss", "train_square", "train_bias", "val_loss",
                                          "val_largest", "hard_loss", "hard_largest"});
}

TEST_CASE("training with a LossSum gives the same results in two processes as in one",
          "[distributed]") {
  const std::string option = GENERATE("graph=0", "graph=1");
  const auto two = words_of_ranks(2, "counts", option), one = words_of_ranks(1, "counts", option);
  REQUIRE(two.size() == one.size());
  REQUIRE(one.size() == 2 * 2 + 2 + 4 + 2);  // losses; two names, a weight, and a bias
  for (size_t i = 0; i < one.size(); ++i) {
    CAPTURE(i);
    if (one[i] == "parameter:") continue;
    CHECK(std::stod(two[i]) == Catch::Approx(std::stod(one[i])).epsilon(1e-5).margin(1e-6));
  }
}

TEST_CASE("both ranks reject values whose names differ between the ranks", "[distributed]") {
  auto ranks = start_ranks(2, {SCONCE_WORKER, "values", "other=1", "timeout=20000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    CHECK(rank->exit_code == 1);
    CHECK_THAT(rank->err(), ContainsSubstring("expected steps that return the same values on every "
                                              "rank, got [square, bias] on rank 0 and [cube, bias] "
                                              "on rank 1"));
  }
}

TEST_CASE("the Trainer runs the test even if one rank has no test batches", "[distributed]") {
  const std::string ema = GENERATE("0", "1");
  auto ranks = start_ranks(2, {SCONCE_WORKER, "evaluate", "ema=" + ema, "timeout=10000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
  }
  const std::string accuracy = ranks[1]->out();
  CHECK_THAT(accuracy, ContainsSubstring("accuracy: 0."));
  CHECK(ranks[0]->out() ==
        accuracy + "by hand: " + accuracy.substr(std::string("accuracy: ").size()));
}

TEST_CASE(
    "captured steps in two processes match eager steps bit for bit, even if one batch is smaller",
    "[distributed]") {
  auto ranks = start_ranks(2, {SCONCE_WORKER, "captured", "timeout=20000"});
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
    CHECK(rank->err().empty());
    CHECK(rank->out() == ranks[0]->out());
  }
  std::istringstream lines(ranks[0]->out());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK_THAT(line, EndsWith(": equal"));
  CHECK(count == (sconce::test::gloo_reduces_16_bits() ? 10 : 9));
  sconce::test::require_gloo_of_16_bits();
}

TEST_CASE("two processes choose the same step variant in the same call", "[distributed]") {
  const auto lines = output_of_ranks(2, {"compiled"});
  INFO(lines);
  for (const std::string line :
       {"slow to compile: e+r+c+ compiled steps are kept, losses alike",
        "slow on one rank: e+r+.* a compiled step takes \\d+ us, a replay \\d+ us, losses alike",
        "kept by both: e+r+c+ an earlier run kept this variant, losses alike",
        "kept by one: e+r+.* a compiled step takes \\d+ us, a replay \\d+ us, losses alike",
        "fails on one rank: e+r+ losses alike",
        "another mode later: e+r+c+e+r+c+ compiled steps are kept, losses alike",
        "fit: compiled, because compiled steps are kept, losses alike"}) {
    CHECK_THAT(lines, Matches("[^]*" + line + "\n[^]*"));
  }
}

TEST_CASE("in a single-process group, DistributedDataParallel calls the module directly") {
  torch::nn::Linear linear(3, 2);
  const auto group = ProcessGroup::init();
  DistributedDataParallel model(linear, group, {.comm_hook = CommHook::bf16_compress});
  CHECK(model.module() == linear.ptr());
  CHECK(model.bucket_sizes().empty());
  const auto x = torch::randn({4, 3});
  CHECK(torch::equal(model(x), linear(x)));
  const auto guard = model.no_sync();
  model.forward(x).sum().backward();
  CHECK(linear->bias.grad().eq(4).all().item<bool>());
}

TEST_CASE(
    "under autocast, training an encoder with masks gives the same results with and without "
    "DistributedDataParallel") {
  using sconce::nn::EncoderArgs;
  torch::manual_seed(0);
  sconce::nn::TransformerEncoderLayer layer(
      sconce::nn::TransformerLayerOptions(8, 2).dim_feedforward(12).dropout(0).batch_first(true));
  sconce::nn::TransformerEncoder encoder(layer, 2);
  const auto x = torch::randn({3, 5, 8});
  const EncoderArgs args = {.src_mask = torch::ones({5, 5}, torch::kBool).triu(1),
                            .src_key_padding_mask = torch::arange(5).expand({3, 5}) >= 4};
  const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kBFloat16});
  encoder(x, args).sum().backward();
  std::vector<torch::Tensor> expected;
  for (const auto& p : encoder->parameters()) expected.push_back(p.grad().clone());
  encoder->zero_grad();
  const auto group = one_with_gloo();
  DistributedDataParallel model(encoder, group);
  model(x, args).sum().backward();
  const auto parameters = encoder->parameters();
  for (size_t i = 0; i < expected.size(); ++i) CHECK(parameters[i].grad().equal(expected[i]));
}

TEST_CASE("a DistributedDataParallel may outlive its group, and the module may outlive both") {
  torch::nn::Linear linear(3, 2);
  {
    std::optional<ProcessGroup> group(one_with_gloo());
    DistributedDataParallel model(linear, *group);
    group.reset();
    model(torch::ones({4, 3})).sum().backward();
    CHECK(linear->bias.grad().eq(4).all().item<bool>());
  }
  linear(torch::ones({4, 3})).sum().backward();
  CHECK(linear->bias.grad().eq(8).all().item<bool>());
}

TEST_CASE("DistributedDataParallel rebuilds its buckets in gradient order after the first step") {
  sconce::test::require_gloo_of_16_bits();
  const auto group = one_with_gloo();
  const auto model = sconce::test::mlp(30);
  DistributedDataParallel small(model, group,
                                {.bucket_cap_mb = 0.002, .comm_hook = CommHook::fp16_compress});
  CHECK(small.bucket_sizes() == std::vector<int64_t>{7480});
  const auto x = torch::randn({8, 20});
  small(x).sum().backward();
  CHECK(small.bucket_sizes() == std::vector<int64_t>{7480});
  small(x).sum().backward();
  CHECK(small.bucket_sizes() == std::vector<int64_t>{4960, 2520});
}

TEST_CASE("a no_sync guard restores the previous setting") {
  const auto group = one_with_gloo();
  torch::nn::Linear linear(3, 2);
  DistributedDataParallel model(linear, group);
  const auto x = torch::ones({1, 3});
  {
    const auto outer = model.no_sync();
    {
      const auto inner = model.no_sync();
    }
    model(x).sum().backward();
    model(x).sum().backward();  // if gradients were sent, the Reducer would fail next
  }
  model(x).sum().backward();
  CHECK(linear->bias.grad().eq(3).all().item<bool>());
}

TEST_CASE("find_unused_parameters finds the tensors in every type of output") {
  using torch::Tensor;
  using Several = std::tuple<std::vector<Tensor>, std::map<std::string, Tensor>,
                             std::optional<Tensor>, std::pair<Tensor, int>>;
  struct Kinds : torch::nn::Module {
    torch::Tensor weight = register_parameter("weight", torch::ones({5}));
    torch::Tensor unused = register_parameter("unused", torch::ones({2}));
    Several forward() {
      return {{weight[0], weight[1], {}}, {{"a", weight[2]}}, weight[3], {weight[4], 7}};
    }
  };
  const auto module = std::make_shared<Kinds>();
  const auto group = one_with_gloo();
  DistributedDataParallel model(module, group, {.find_unused_parameters = true});
  for (int step = 0; step < 2; ++step) {
    auto [list, map, maybe, pair] = model.forward();
    (list[0] + list[1] * 2 + map.at("a") * 3 + *maybe * 4 + pair.first * 5).backward();
    CHECK(pair.second == 7);
  }
  CHECK(torch::equal(module->weight.grad(), torch::arange(1.F, 6.F) * 2));
  CHECK_FALSE(module->unused.grad().defined());
}

TEST_CASE("find_unused_parameters rejects outputs that contain no tensors") {
  struct Number : torch::nn::Module {
    torch::Tensor weight = register_parameter("weight", torch::ones({5}));
    int forward() { return 1; }
  };
  const auto group = one_with_gloo();
  DistributedDataParallel model(std::make_shared<Number>(), group,
                                {.find_unused_parameters = true});
  CHECK_THROWS_WITH(model.forward(), ContainsSubstring("an output that contains tensors"));
}

TEST_CASE("DistributedDataParallel rejects invalid modules and a bucket_cap_mb of 0") {
  CHECK_THAT(refusal(nullptr), ContainsSubstring("expected a module, got none"));
  CHECK_THAT(refusal(torch::nn::ReLU().ptr()), ContainsSubstring("parameter that requires grad"));
  CHECK_THAT(refusal(torch::nn::Linear(2, 2).ptr(), {.bucket_cap_mb = 0}),
             ContainsSubstring("bucket_cap_mb to be above 0, got 0"));
  const sconce::nn::LazyLinear lazy(3);
  CHECK_THAT(refusal(lazy.ptr()), ContainsSubstring("DistributedDataParallel: expected") &&
                                      ContainsSubstring("uninitialized"));
  struct Scattered : torch::nn::Module {
    torch::Tensor here = register_parameter("here", torch::ones({2}));
    torch::Tensor there = register_parameter("there", torch::ones({2}, torch::kMeta));
  };
  CHECK_THAT(
      refusal(std::make_shared<Scattered>()),
      ContainsSubstring("expected all parameters on cpu") && ContainsSubstring("there on meta"));
}

TEST_CASE("DistributedDataParallel has the same defaults as in Python") {
  const DistributedDataParallelOptions options;
  CHECK(options.broadcast_buffers);
  CHECK_FALSE(options.bucket_cap_mb);
  CHECK_FALSE(options.find_unused_parameters);
  CHECK_FALSE(options.static_graph);
  CHECK(options.comm_hook == CommHook::none);
}
