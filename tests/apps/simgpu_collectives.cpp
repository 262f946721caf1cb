// Collectives of NCCL that do not match between two ranks, and the same ones that match. Each rank
// runs
//   test-simgpu-collectives FOLDER wrong|right
// with RANK, LOCAL_RANK and WORLD_SIZE set; the ranks meet in the empty folder. Prints how each
// case ends.
#include <torch/torch.h>
#include <sconce/distributed/process_group.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using sconce::distributed::ProcessGroup;
using sconce::distributed::ReduceOp;
using torch::Tensor;

Tensor ones(const ProcessGroup& group, int64_t count, torch::Dtype type = torch::kFloat) {
  return torch::ones({count}, torch::device(group.device()).dtype(type));
}

// What a rank calls. The other one gets `differs` in the wrong program.
using Case = std::function<void(const ProcessGroup& group, bool differs)>;

const std::vector<std::pair<std::string, Case>> cases = {
    {"kind",
     [](const ProcessGroup& group, bool differs) {
       if (differs) {
         group.broadcast(ones(group, 100), 0);
       } else {
         group.all_reduce(ones(group, 100));
       }
     }},
    {"count",
     [](const ProcessGroup& group, bool differs) {  // of as many pieces as it takes
       group.all_reduce(ones(group, differs ? 1 << 20 : 100));
     }},
    {"type",
     [](const ProcessGroup& group, bool differs) {
       group.all_reduce(ones(group, 100, differs ? torch::kInt : torch::kFloat));
     }},
    {"reduction",
     [](const ProcessGroup& group, bool differs) {
       group.all_reduce(ones(group, 100), differs ? ReduceOp::max : ReduceOp::sum);
     }},
    {"root", [](const ProcessGroup& group, bool differs) {
       group.broadcast(ones(group, 100), differs ? 1 : 0);
     }}};

// A group of its own for each case, since a group cannot be used once a collective has failed.
void run(const std::string& folder, const std::string& name, const Case& call, bool is_right) {
  std::string line = name + " is done\n";
  try {
    const auto group = ProcessGroup::init({.backend = "nccl",
                                           .init_method = "file://" + folder + "/" + name,
                                           .timeout = std::chrono::seconds(60)});
    call(group, !is_right && group.rank() == 1);
    group.barrier();
  } catch (const std::exception& error) {
    line = name + " fails: " + std::string(error.what()).substr(0, 2000) + "\n";
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  // A wait throws what a collective has failed with, and LibTorch's watchdog ends no process.
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 1);
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 1);
  for (const auto& [name, call] : cases) {
    run(argv[1], name, call, std::strcmp(argv[2], "right") == 0);
  }
  return 0;
}
