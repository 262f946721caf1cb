#include "sconce/data/distributed_sampler.hpp"

#include <sstream>

#include "catch.hpp"
#include "sconce/distributed/process_group.hpp"
#include "support/ask_python.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::DistributedSampler;
using sconce::data::DistributedSamplerOptions;
using sconce::distributed::ProcessGroup;

namespace {

std::string text(const torch::Tensor& rows) {
  std::ostringstream out;
  for (int64_t i = 0; i < rows.size(0); ++i) out << ' ' << rows[i].item<int64_t>();
  return out.str();
}

}  // namespace

TEST_CASE("DistributedSampler returns the same indices as in Python", "[python]") {
  const auto group = ProcessGroup::init();
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "distributed_sampler.py", "indices");
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    std::istringstream words(line);
    int64_t size = 0, epoch = 0, length = 0;
    int replicas = 0, rank = 0;
    DistributedSamplerOptions options;
    std::string expected;
    words >> size >> replicas >> rank >> options.shuffle >> options.seed >> options.drop_last >>
        epoch >> length;
    std::getline(words, expected);
    options.num_replicas = replicas;
    options.rank = rank;
    DistributedSampler sampler(size, group, options);
    sampler.set_epoch(epoch);
    INFO(line);
    CHECK(sampler.size() == length);
    CHECK(text(sampler.indices()) == expected);
  }
  CHECK(compared == 468);
}

TEST_CASE("DistributedSampler gets its rank and size from the process group") {
  const auto group = ProcessGroup::init();
  const DistributedSampler sampler(5, group, {.shuffle = false});
  CHECK(text(sampler.indices()) == " 0 1 2 3 4");
}

TEST_CASE(
    "DistributedSampler does not use the global generator and changes its order in each epoch") {
  const auto group = ProcessGroup::init();
  torch::manual_seed(3);
  const auto next = torch::rand({4});
  torch::manual_seed(3);
  DistributedSampler sampler(100, group);
  const auto first = sampler.indices();
  CHECK(torch::equal(sampler.indices(), first));
  sampler.set_epoch(1);
  CHECK(sampler.epoch() == 1);
  CHECK_FALSE(torch::equal(sampler.indices(), first));
  CHECK(torch::equal(torch::rand({4}), next));
}

TEST_CASE("DistributedSampler requires set_epoch only if it shuffles") {
  const auto group = ProcessGroup::init();
  CHECK(DistributedSampler(5, group).requires_set_epoch());
  CHECK_FALSE(DistributedSampler(5, group, {.shuffle = false}).requires_set_epoch());
}

TEST_CASE("DistributedSampler rejects invalid sizes, ranks, and epochs") {
  const auto group = ProcessGroup::init();
  CHECK_THROWS_WITH(DistributedSampler(-1, group),
                    ContainsSubstring("dataset_size to be at least 0"));
  CHECK_THROWS_WITH(DistributedSampler(4, group, {.num_replicas = 0}),
                    ContainsSubstring("num_replicas to be at least 1, got 0"));
  CHECK_THROWS_WITH(DistributedSampler(4, group, {.num_replicas = 2, .rank = 2}),
                    ContainsSubstring("rank of 0 to 1, got 2"));
  DistributedSampler sampler(4, group);
  CHECK_THROWS_WITH(sampler.set_epoch(-1), ContainsSubstring("epoch to be at least 0, got -1"));
}

TEST_CASE("DistributedSampler has the same defaults as in Python") {
  const DistributedSamplerOptions options;
  CHECK(options.shuffle);
  CHECK(options.seed == 0);
  CHECK_FALSE(options.drop_last);
}
