// Tests sconce-simgpu and the calls that simulated GPUs reject and report.
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "support/check_refused.hpp"
#include "support/run_program.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;
using sconce::test::run_program;
using sconce::test::RunResult;
using sconce::test::TempDir;
using sconce::test::torchrun;

namespace {

const std::string simgpu = SCONCE_BIN_DIR "/sconce-simgpu";
const std::string train = SCONCE_BIN_DIR "/sconce-train";
const std::string info = SCONCE_BIN_DIR "/sconce-info";

// Runs a program on simulated GPUs, even on a machine with a real GPU.
RunResult simulated(const std::string& flags, const std::string& program,
                    const std::string& variables = "") {
  return run_program(variables + " OMP_NUM_THREADS=1 " + simgpu + " --hide-real-gpus " + flags +
                     " -- " + program);
}

RunResult fault(const std::string& name, const std::string& how, const std::string& flags = "") {
  return simulated(flags, std::string(SCONCE_SIMGPU_FAULTS " ") + name + " " + how);
}

// Runs two ranks with NCCL collectives that match, do not match, or start late. The option to throw
// on races is not set, because a failed case frees its memory early, which would make the next case
// throw.
RunResult collectives(const std::string& how) {
  const TempDir folder;
  const std::string rank = simgpu + " --hide-real-gpus -- " + SCONCE_SIMGPU_COLLECTIVES " " +
                           folder.path().string() + " " + how;
  return run_program("(export WORLD_SIZE=2 OMP_NUM_THREADS=1; RANK=1 LOCAL_RANK=1 " + rank +
                     " & RANK=0 LOCAL_RANK=0 " + rank + "; wait)");
}

void check_refused(const RunResult& ran, const std::string& reason) {
  CHECK_THAT(ran.err, StartsWith("sconce-simgpu: "));
  sconce::test::check_refused(ran, 2, reason);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the lines printed by a two-epoch training run.
std::string losses(const RunResult& ran) {
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto first = ran.out.find("epoch 1/2: ");
  REQUIRE(first != std::string::npos);
  return ran.out.substr(first, ran.out.rfind("\n", ran.out.size() - 2) - first);
}

int visible_gpus(const std::string& flags, const std::string& visible) {
  const RunResult ran = simulated(flags, info + " --json", "CUDA_VISIBLE_DEVICES=" + visible);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto count = nlohmann::json::parse(ran.out)["libtorch"]["num_gpus"].get<int>();
  CHECK_THAT(ran.err, ContainsSubstring("each, and CUDA_VISIBLE_DEVICES exposes " +
                                        std::to_string(count) + ";"));
  return count;
}

}  // namespace

TEST_CASE(
    "before starting anything, sconce-simgpu rejects invalid options and programs that cannot "
    "run") {
  const std::string gpus = "a whole number from 1 to 64", python = "Python with torch";
  const std::array<std::string, 4> refused[] = {
      {"--gpus 0", info, "", gpus},
      {"--gpus 65", info, "", gpus},
      {"--gpus x", info, "", gpus},
      {"--memory 31MiB", info, "", "from 32MiB to 1024GiB"},
      {"--races no", info, "", "must be off|report|fail|throw|strict"},
      {"--counts /no/such/folder/file", info, "", "--counts: cannot write"},
      {"--report /no/such/folder/file", info, "", "--report: cannot write"},
      {"--ignore /no/such/file", info, "", "--ignore: cannot read /no/such/file"},
      {"--ignore " SCONCE_TESTS_DIR "/apps/simgpu_steps.json", info, "",
       "line 1: expected a comment with the reason before the pattern"},
      {"", "", "", "expected a program after --"},
      {"", "no-such-program", "", "no such program"},
      {"", "bash -c 'echo started'", "", python},
      {"", simgpu + " -- " + info, "", python},
      {"", info, "LD_PRELOAD=libm.so.6", "expected LD_PRELOAD to be unset"},
      {"", info, "SCONCE_SIMGPU_GPUS=2", "already runs on simulated GPUs"}};
  for (const auto& [flags, program, variables, error] : refused) {
    INFO(variables << " " << flags << " -- " << program);
    check_refused(simulated(flags, program, variables), error);
  }
  check_refused(run_program(simgpu + " " + info), "the program must come after --");
}

TEST_CASE(
    "sconce-simgpu rejects statically linked programs and programs that use a different LibTorch") {
  const TempDir folder;
  const std::string of_other = (folder.path() / "python").string();
  const auto torch = folder.path() / "torch";
  std::filesystem::create_directories(torch / "lib");
  std::ofstream(of_other) << "#!/bin/sh\nprintf %s '" << torch.string() << "'\n";
  std::filesystem::permissions(of_other, std::filesystem::perms::owner_all);
  const std::string without = (folder.path() / "python3").string();
  std::ofstream(without) << "#!/bin/sh\nexit 1\n";
  std::filesystem::permissions(without, std::filesystem::perms::owner_all);
  check_refused(simulated("", without), "this Python cannot import torch");
  check_refused(simulated("", of_other), "is a CPU build");
  std::ofstream(torch / "lib/libtorch_cuda.so").flush();
  std::ofstream(torch / "version.py") << "__version__ = '2.10.1+cu130'\n";
  check_refused(simulated("", of_other), "is 2.10.1");

  const std::string program = (folder.path() / "static").string();
  std::ofstream(folder.path() / "static.c") << "int main(void) { return 0; }\n";
  if (run_program("cc -static -o " + program + " " + program + ".c").exit_code != 0) {
    SKIP("this machine links no program statically");
  }
  check_refused(simulated("", program), "the program is linked statically");
}

TEST_CASE("on a machine with a real GPU driver, sconce-simgpu starts only with --hide-real-gpus") {
  const std::string with_driver = "LD_LIBRARY_PATH=" SCONCE_DRIVER_DIR " " + simgpu;
  check_refused(run_program(with_driver + " -- " + info), "--hide-real-gpus");
  CHECK(run_program(with_driver + " --hide-real-gpus -- " + info).exit_code == 0);
}

TEST_CASE("simulated GPUs identify themselves as simulated") {
  const RunResult ran = simulated("--gpus 3 --memory 512MiB", info, "env -u CUDA_VISIBLE_DEVICES");
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.err, StartsWith("simulated GPUs: 3 with 512 MiB each; simulated"));
  CHECK_THAT(ran.out, ContainsSubstring("Simulated GPU"));
}

TEST_CASE("CUDA_VISIBLE_DEVICES selects simulated GPUs according to CUDA's rules") {
  CHECK(visible_gpus("--gpus 3", "''") == 0);
  CHECK(visible_gpus("--gpus 3", "-1") == 0);
  CHECK(visible_gpus("--gpus 3", "2,0") == 2);
  CHECK(visible_gpus("--gpus 3", "1,7,0") == 1);
  CHECK(visible_gpus("--gpus 3", "nonsense") == 0);
}

TEST_CASE("training on two simulated GPUs produces the same losses as training on the CPU") {
  const std::string flags = train + " --model mlp --epochs 2 --device ";
  const auto expected = losses(run_program("OMP_NUM_THREADS=1 " + flags + "cpu"));
  CHECK(losses(simulated("--races throw", flags + "cuda:0")) == expected);
  CHECK(losses(simulated("--races throw", flags + "auto --parallel data")) == expected);
  CHECK(losses(simulated("--races throw --late-copies off", flags + "cuda:1")) == expected);
}

TEST_CASE("a network trained on simulated GPUs can be exported and run on the CPU") {
  const TempDir folder;
  const auto table = folder.write("table.csv", "x,y\n1,2\n2,4\n3,5\n4,9\n5,9\n6,13\n7,13\n");
  const std::string out = (folder.path() / "out").string();
  const std::string flags = GENERATE("--device cuda:0 --graph", "--parallel data");
  const RunResult ran = simulated(
      "--gpus 2", train + " --data " + table.string() + " --target y --epochs 2 --ema 0.5 " +
                      flags + " --out " + out + " --export " + out + "/program.safetensors");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto predicted = [&](const std::string& name) {
    return run_program("OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= " + train + " predict --weights " +
                       out + "/" + name + " " + table.string());
  };
  const RunResult by_program = predicted("program.safetensors");
  INFO(by_program.err);
  CHECK(by_program.exit_code == 0);
  CHECK_THAT(by_program.out, ContainsSubstring("row 7: "));
  CHECK(by_program.out == predicted("model.safetensors").out);
}

TEST_CASE(
    "two processes that train over NCCL with one simulated GPU each produce the same losses as on "
    "CPUs") {
  if (!std::filesystem::exists(torchrun())) SKIP("this LibTorch is not from a Python package");
  const std::string flags = torchrun().string() + " --standalone --nproc-per-node=2 --no-python " +
                            train + " --model mlp --epochs 2 --parallel distributed";
  const RunResult ran = simulated("--races throw", flags);
  CHECK_THAT(ran.out, ContainsSubstring("nccl"));
  CHECK(losses(ran) == losses(run_program("OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= " + flags)));
}

TEST_CASE("a training step issues exactly the recorded GPU work and never waits for the GPU") {
  const auto [name, flags] = GENERATE(table<std::string, std::string>(
      {{"simple_nn", ""}, {"lenet", ""}, {"ddp", ""}, {"simple_nn", " item"}}));
  if (name == "ddp" && !std::filesystem::exists(torchrun())) SKIP("this LibTorch has no torchrun");
  const TempDir folder;
  const std::string file = (folder.path() / "counts.json").string();
  const std::string launcher =
      name == "ddp" ? torchrun().string() + " --standalone --nproc-per-node=2 --no-python " : "";
  const RunResult ran = simulated("--races throw --counts " + file,
                                  launcher + SCONCE_SIMGPU_STEPS " " + name + flags);
  INFO(name << flags << ": " << ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto written = sconce::test::contents(file + (name == "ddp" ? ".0" : ""));
  const auto step = nlohmann::json::parse(written)["ranges"]["counted"];
  CHECK(step["host_waits"].empty() == flags.empty());
  CHECK(step["copies"].empty() == flags.empty());
  CHECK(step["allocations"] == 0);
  if (!flags.empty()) return;
  const auto kept = sconce::test::contents(SCONCE_TESTS_DIR "/apps/simgpu_steps.json");
  CHECK(step["work"] == nlohmann::json::parse(kept)[name]);
}

TEST_CASE(
    "a host wait is counted under its code address, which addr2line resolves to the source line") {
  const TempDir folder;
  const std::string file = (folder.path() / "counts.json").string();
  REQUIRE(simulated("--counts " + file, SCONCE_SIMGPU_STEPS " simple_nn item").exit_code == 0);
  const auto counts = nlohmann::json::parse(sconce::test::contents(file));
  const std::string source = sconce::test::contents(SCONCE_TESTS_DIR "/apps/simgpu_print_loss.cpp");
  const auto line = 1 + std::count(source.begin(), source.begin() + source.find(".item"), '\n');
  const auto waits = counts["ranges"]["counted"]["host_waits"];
  REQUIRE(waits.size() == 1);
  const auto wait = waits.items().begin().key();
  CHECK(waits[wait] == 1);
  const std::string place = "cudaStreamSynchronize at test-simgpu-steps ";
  REQUIRE_THAT(wait, StartsWith(place + "0x"));
  const RunResult lines =
      run_program("addr2line -Cfpe " SCONCE_SIMGPU_STEPS " " + wait.substr(place.size()));
  INFO(lines.out);
  CHECK_THAT(lines.out, Matches("print_loss[^\n]*simgpu_print_loss.cpp:" + std::to_string(line) +
                                "\n(.*\n)*main .*\n(.*\n)*"));
}

TEST_CASE("graph replays are counted both for the named range and for the whole run") {
  const TempDir folder;
  const std::string file = (folder.path() / "counts.json").string();
  const RunResult ran = simulated("--counts " + file, train + " --model mlp --epochs 1 --graph");
  REQUIRE(ran.exit_code == 0);
  const auto counts = nlohmann::json::parse(sconce::test::contents(file));
  CHECK(counts["run"]["replays"].get<int>() > 0);
  CHECK(counts["ranges"]["step"]["replays"] == counts["run"]["replays"]);
  CHECK(counts["run"]["allocated_bytes"].get<int64_t>() >= 1 << 20);
}

TEST_CASE(
    "simulated GPUs detect mistakes that cause failures on real GPUs, and the corrected programs "
    "run cleanly") {
  struct Fault {
    std::string name, report, right, mode = "throw";
  };
  const std::vector<Fault> faults = {
      {"prefetch", "nothing orders", "28000"},
      {"record_stream", "record_stream is missing", "1", "strict"},
      {"reuse", "record_stream is missing", "1"},
      {"early_read", "before the copy to that memory", "0 1", "fail"},
      {"two_copies", "nothing orders", "1", "fail"},
      {"caught", "nothing orders", "28000"},
      {"freed_last", "record_stream is missing", "1", "strict"},
      {"cpu_index", "captur", "10"},
      {"cpu_value", "captur", "990"},
      {"mask", "stream is capturing", "990"},
      {"sorter", "stream is capturing", "7"},
      {"two_threads", "nothing orders", "2"},
      {"columns", "writes 1000 rows of 8 bytes", "4000"},
      {"channels", "writes 12 rows of 20 bytes", "120"},
      {"pinned_buffer", "4000 bytes of pinned memory changed after a copy", "28 28"},
      {"step_count", "on the same device", "0.5"},
      {"event_of_another_gpu", "Event device index", "recorded"},
      {"out_of_memory", "out of memory", "1"}};
  std::string names, printed;
  for (const auto& [name, report, right, mode] : faults) {
    INFO(name);
    const RunResult wrong = fault(name, "wrong", "--races " + mode);
    CHECK(wrong.exit_code == 1);
    CHECK_THAT(wrong.err, ContainsSubstring(report));
    names += (names.empty() ? "" : ",") + name;
    printed += right + "\n";
  }
  const RunResult right = fault(names, "right", "--races throw");  // one process, so none may fail
  INFO(right.err);
  CHECK(right.exit_code == 0);
  CHECK(right.out == printed);
  CHECK(std::count(right.err.begin(), right.err.end(), '\n') == 1);  // describes the GPUs
}

TEST_CASE(
    "custom kernels and operators run their CPU code in stream order, and their races with other "
    "GPU work are reported") {
  const auto run = [](const std::string& name, const std::string& how) {
    return simulated("--races throw", SCONCE_SIMGPU_KERNELS " " + name + " " + how);
  };
  const auto [name, report, right] = GENERATE(table<std::string, std::string, std::string>(
      {{"kernel", "scale(float*, float, int) writes 4000 bytes on stream ", "6000\n"},
       {"operator", "simgpu_kernels::twice reads 4000 bytes on stream ", "4000\n"}}));
  const RunResult wrong = run(name, "wrong");
  CHECK(wrong.exit_code == 1);
  CHECK_THAT(wrong.err, ContainsSubstring("simulated GPUs: a race: " + report));
  CHECK(run(name, "right").out == right);
}

TEST_CASE("a CUDA graph replays a custom kernel with the arguments from the capture") {
  const RunResult ran = simulated("--races throw", SCONCE_SIMGPU_KERNELS " graph right");
  INFO(ran.err);
  CHECK(ran.out == "4 36\n");
}

TEST_CASE("a CUDA kernel without a CPU function is rejected, and the error names the kernel") {
  const RunResult ran = simulated("", SCONCE_SIMGPU_KERNELS " refused right");
  CHECK_THAT(ran.err, ContainsSubstring("simulated GPUs: the CUDA kernel unknown() cannot run\n"));
  CHECK(ran.out == "801\n");  // cudaErrorNotSupported
}

TEST_CASE("docs/simulated_gpus.md shows the CPU function that the tests use") {
  CHECK_THAT(
      sconce::test::contents(SCONCE_TESTS_DIR "/../docs/simulated_gpus.md"),
      ContainsSubstring(sconce::test::contents(SCONCE_TESTS_DIR "/apps/simgpu_scale_on_cpu.cpp")));
}

TEST_CASE("sconce-simgpu counts LibTorch's copies of CPU indices") {
  const TempDir folder;
  const std::string file = (folder.path() / "counts.json").string();
  REQUIRE(fault("copied_indices", "wrong", "--counts " + file).out == "[10]\n");
  const auto copied = nlohmann::json::parse(sconce::test::contents(file))["run"];
  const nlohmann::json copies = {{"a copy from pinned memory to a GPU", 1},
                                 {"a copy from the CPU to a GPU", 1}};
  CHECK(copied["copies"] == copies);
  REQUIRE(copied["host_waits"].size() == 1);
  CHECK_THAT(copied["host_waits"].begin().key(), StartsWith("cudaStreamSynchronize"));
  REQUIRE(fault("copied_indices", "right", "--counts " + file).out == "[10]\n");
  const auto not_copied = nlohmann::json::parse(sconce::test::contents(file))["run"];
  CHECK(not_copied["copies"].empty());
  CHECK(not_copied["host_waits"].empty());
}

TEST_CASE(
    "a graph replay uses a CPU scalar's value from the capture, and a later change to the scalar "
    "is reported") {
  const RunResult wrong = fault("factor", "wrong");
  CHECK(wrong.out == "4 float\n");
  CHECK_THAT(wrong.err,
             ContainsSubstring("during a graph replay, aten::add_.Tensor uses the captured "
                               "value 2 of a one-element CPU tensor, but the current value is 5"));
  CHECK(fault("factor", "wrong", "--races throw").exit_code == 1);
  CHECK(fault("factor", "right", "--races throw").out == "7 float\n");
}

TEST_CASE("a capture that waits for another rank does not block other threads from using its GPU") {
  const RunResult ran = collectives("late");
  INFO(ran.out << ran.err);
  CHECK(count_of(ran.out, " is done\n") == 4);  // two captures on each rank
}

TEST_CASE("mismatched collectives fail on every rank with an error that shows both calls") {
  const RunResult wrong = collectives("wrong");
  INFO(wrong.out << wrong.err);
  const std::string all_reduce = " but rank 0 calls ncclAllReduce of 100 float32, sum";
  for (const auto& [name, report] : std::map<std::string, std::string>{
           {"kind", "rank 1 calls ncclBroadcast of 100 float32 from rank 0," + all_reduce},
           {"count", "rank 1 calls ncclAllReduce of 1048576 float32, sum," + all_reduce},
           {"type", "rank 1 calls ncclAllReduce of 100 int32, sum," + all_reduce},
           {"reduction", "rank 1 calls ncclAllReduce of 100 float32, max," + all_reduce},
           {"root",
            "rank 1 calls ncclBroadcast of 100 float32 from rank 1, but rank 0 calls "
            "ncclBroadcast of 100 float32 from rank 0"}}) {
    INFO(name);
    CHECK(count_of(wrong.out, name + " fails") == 2);
    CHECK(count_of(wrong.out, "simulated GPUs: " + report + "\n") == 2);
    CHECK_THAT(wrong.err, ContainsSubstring("simulated GPUs: " + report + "\n"));
  }
  const RunResult right = collectives("right");
  INFO(right.out << right.err);
  CHECK(count_of(right.out, " is done\n") == 10);
  CHECK(count_of(right.err, "\n") == 2);  // describes the GPUs
}

TEST_CASE(
    "NCCL calls that deadlock or wait for a busy host are aborted, and the error reports which "
    "ranks are waiting") {
  const RunResult ran = collectives("stuck");
  INFO(ran.out << ran.err);
  const std::string send = "ncclSend of 1048576 float32 to rank ";
  const std::string reduce_100 = "ncclAllReduce of 100 float32, sum";
  const std::string reduce_200 = "ncclAllReduce of 200 float32, sum";
  CHECK(count_of(ran.out, "sends fails") == 2);
  CHECK_THAT(ran.err, ContainsSubstring(" s for rank 1 in " + send + "1; rank 1 has waited "));
  CHECK_THAT(ran.err, ContainsSubstring(" s for rank 0 in " + send + "0; rank 0 has waited "));
  // If one rank finishes its call first, the other rank's call may succeed.
  CHECK(count_of(ran.out, "order fails") >= 1);
  const std::string queued = " s for earlier work on its stream to finish before ";
  CHECK(count_of(ran.err, " s for rank 1 in " + reduce_100 + "; rank 1 has waited ") +
            count_of(ran.err, " s for rank 0 in " + reduce_200 + "; rank 0 has waited ") >=
        1);
  CHECK(count_of(ran.err, queued + reduce_100 + "\n") +
            count_of(ran.err, queued + reduce_200 + "\n") >=
        1);
  CHECK(count_of(ran.out, "sizes fails") == 2);
  CHECK(count_of(ran.out,
                 "rank 1 calls ncclRecv of 1048581 float32 from rank 0, but rank 0 calls "
                 "ncclSend of 1048576 float32 to rank 1\n") == 2);
  CHECK(count_of(ran.out, "busy is done") == 2);
  CHECK_THAT(ran.err, ContainsSubstring(" s for rank 1 in " + reduce_100 +
                                        "; rank 1 has not used this communicator for "));
}

TEST_CASE(
    "if a rank throws while NCCL is waiting for another rank, the failing rank prints its error "
    "and exits") {
  const TempDir folder;
  const std::string path = folder.path().string();
  const std::string rank =
      simgpu + " --hide-real-gpus -- " + SCONCE_SIMGPU_COLLECTIVES " " + path + " alone";
  const RunResult ran = run_program("(export WORLD_SIZE=2 OMP_NUM_THREADS=1; RANK=0 LOCAL_RANK=0 " +
                                    rank + " & RANK=1 LOCAL_RANK=1 timeout 120 " + rank +
                                    "; touch " + path + "/rank_1_has_ended; wait)");
  INFO(ran.out << ran.err);
  CHECK(count_of(ran.out, "alone fails: rank 1 is wrong\n") == 1);
  CHECK(count_of(ran.out, "alone is done\n") == 1);
}

TEST_CASE("replaying a graph that uses memory freed after the capture reports the freed memory") {
  if (!std::filesystem::exists(torchrun())) SKIP("this LibTorch is not from a Python package");
  const RunResult ran =
      simulated("--races throw", SCONCE_PYTHON " " SCONCE_TESTS_DIR "/apps/simgpu_graphs.py");
  INFO(ran.err);
  CHECK(ran.exit_code == 1);  // even though the script catches the exception
  const std::string line = "simulated GPUs: during a graph replay, ";
  const std::string freed = ", which were freed after the capture\n";
  CHECK_THAT(ran.out, StartsWith("freed wrong fails: " + line));
  CHECK_THAT(ran.out,
             ContainsSubstring(" reads 4000 bytes of cuda:0" + freed + "freed right 2.0\n"));
  CHECK_THAT(ran.err, ContainsSubstring(" reads 33554432 bytes of cuda:0" + freed));
  CHECK_THAT(ran.err, ContainsSubstring(" reads 4000 bytes of pinned memory" + freed));
  const std::string illegal =
      " wrong fails: CUDA error: an illegal memory access was encountered\n";
  CHECK_THAT(ran.out, ContainsSubstring("\nreturned" + illegal + "returned right 2.0\npinned" +
                                        illegal + "pinned right 1.0\nof_a_pool wrong 4.0\n"));
  CHECK(count_of(ran.err, line) == 3);
}

TEST_CASE("accessing GPU memory through its address in host code terminates the program") {
  const std::string name = GENERATE("host_read", "host_write");
  const RunResult wrong = fault(name, "wrong");
  CHECK(wrong.exit_code != 0);
  CHECK_THAT(wrong.err, ContainsSubstring(name == "host_read" ? "reads" : "writes") &&
                            ContainsSubstring("cuda:0") && ContainsSubstring("bytes"));
  CHECK(wrong.out.empty());
  CHECK(fault(name, "right").out == "1\n");
}

TEST_CASE(
    "changing pinned memory after a copy from it was issued is reported, whether the copy runs "
    "early or late") {
  const auto is_named =
      ContainsSubstring("4000 bytes of pinned memory changed after a copy from that memory");
  const RunResult right = fault("pinned_write", "right");
  CHECK(right.out == "1\n");
  CHECK_THAT(right.err, !is_named);
  const RunResult late = fault("pinned_write", "wrong");
  CHECK(late.out == "2\n");
  CHECK_THAT(late.err, is_named);
  const RunResult at_once = fault("pinned_write", "wrong", "--late-copies off");
  CHECK(at_once.out == "1\n");
  CHECK_THAT(at_once.err, is_named);
}

TEST_CASE("CUDA and NCCL functions reject invalid handles and null pointers without crashing") {
  const std::string library = SCONCE_SIMGPU_LIBRARY;
  const RunResult ran = run_program("SCONCE_SIMGPU_GPUS=2 LD_PRELOAD=" + library + " " +
                                    SCONCE_SIMGPU_CALLS + " " + library + " 100 1");
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring(" functions, 0 failures\n"));
}

TEST_CASE(
    "a slow kernel keeps its stream busy and does not cause earlier copies to complete too soon") {
  const RunResult ran = fault("sleep", "right", "--races throw");
  INFO(ran.err);
  CHECK(ran.out == "1 1 1\n");
  CHECK(fault("sleep", "wrong").out == "1 1 2\n");
}

TEST_CASE("a capture does not change the results of work outside the capture") {
  const RunResult wrong = fault("capture", "wrong", "--races throw");
  INFO(wrong.err);
  CHECK_THAT(wrong.out, Matches("1 0 -?nan 7\n"));
  const RunResult right = fault("capture", "right", "--races throw");
  INFO(right.err);
  CHECK(right.out == "1 0 2 7\n");
  CHECK(fault("capture", "right", "--late-copies off").out == "1 0 2 7\n");
}

TEST_CASE("the program continues after a race is reported unless --races is throw or strict") {
  const RunResult failed = fault("prefetch", "wrong", "--races fail");
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.out, ContainsSubstring("nan"));
  const RunResult ran = fault("prefetch", "wrong");
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("nan"));
  CHECK_THAT(ran.err, ContainsSubstring("simulated GPUs: ") && ContainsSubstring("nothing orders"));
  CHECK_THAT(fault("prefetch", "wrong", "--races off").out, ContainsSubstring("nan"));
}

TEST_CASE(
    "reports are written to a file as JSON or JUnit XML, and reports listed as known are ignored") {
  const TempDir folder;
  const auto known =
      folder.write("known", "# Tried and found to be harmless.\n*a copy from a GPU*\n");
  const std::string json = (folder.path() / "report.json").string();
  const RunResult failed = fault("prefetch,reuse", "wrong", "--races fail --report " + json);
  CHECK(failed.exit_code == 1);
  const auto reports = nlohmann::json::parse(sconce::test::contents(json))["reports"];
  REQUIRE(reports.size() == 2);
  CHECK_THAT(failed.err, ContainsSubstring(reports[0]["text"].get<std::string>()));
  CHECK(reports[0]["count"] == 8);
  CHECK(reports[0]["ignored"].is_null());

  const std::string ignore = " --ignore " + known.string() + " --report ";
  REQUIRE(fault("reuse", "wrong", "--races throw" + ignore + json).exit_code == 0);
  const auto ignored = nlohmann::json::parse(sconce::test::contents(json))["reports"];
  REQUIRE(ignored.size() == 1);
  CHECK(ignored[0]["ignored"] == "Tried and found to be harmless.");

  const std::string xml = (folder.path() / "report.xml").string();
  const RunResult both = fault("prefetch,reuse", "wrong", "--races fail" + ignore + xml);
  CHECK(both.exit_code == 1);
  CHECK_THAT(both.err,
             ContainsSubstring("reports ignored by " + known.string() + ": 1 by line 2") &&
                 !ContainsSubstring("a copy from a GPU"));
  CHECK_THAT(sconce::test::contents(xml),
             ContainsSubstring(R"(tests="2" failures="1" skipped="1")") &&
                 ContainsSubstring(R"(<failure message="8 times"/>)") &&
                 ContainsSubstring(R"(<skipped message="Tried and found to be harmless."/>)"));
}

TEST_CASE("reports from several processes are written to the same file") {
  const TempDir folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string program = SCONCE_SIMGPU_FAULTS " prefetch wrong";
  const std::string two =
      SCONCE_PYTHON
      " -c \"import subprocess, sys\nfor run in [subprocess.Popen(sys.argv[1:]) for _ in '12']: "
      "run.wait()\" " +
      program;
  if (!std::filesystem::exists(torchrun())) SKIP("this LibTorch is not from a Python package");
  REQUIRE(simulated("--report " + file, two).exit_code == 0);
  const auto reports = nlohmann::json::parse(sconce::test::contents(file))["reports"];
  REQUIRE(reports.size() == 2);
  CHECK(reports[0]["process"] != reports[1]["process"]);
  CHECK(reports[0]["text"] == reports[1]["text"]);
}

TEST_CASE(
    "with --places, a report shows the Python lines or the C++ addresses of both operations") {
  const RunResult cpp = fault("prefetch", "wrong", "--places");
  CHECK_THAT(cpp.err,
             Matches("(.|\n)* of cuda:0 at test-simgpu-faults 0x(.|\n)*on stream 1 of cuda:0 "
                     "at test-simgpu-faults 0x(.|\n)*"));
  if (!std::filesystem::exists(torchrun())) SKIP("this LibTorch is not from a Python package");
  const std::string script = SCONCE_TESTS_DIR "/apps/simgpu_places.py";
  const RunResult ran = simulated("--places", SCONCE_PYTHON " " + script);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);  // even though an autograd thread may still be running
  const auto line_of = [&](const std::string& comment) {
    const auto source = sconce::test::contents(script);
    const auto end = source.begin() + static_cast<std::ptrdiff_t>(source.find(comment));
    return script + ":" + std::to_string(1 + std::count(source.begin(), end, '\n'));
  };
  CHECK_THAT(ran.err, ContainsSubstring(
                          "of cuda:0 at " + line_of("# the reader") +
                          ", which aten::fill_.Scalar writes on stream 1 of cuda:0 at " +
                          line_of("# the writer") + ", and nothing orders the two operations"));
}

TEST_CASE("exactly one GPU test case needs a real GPU") {
  const RunResult found = run_program("grep -rhoF 'real-gpu]' '" SCONCE_TESTS_DIR
                                      "' --include='*_test.cpp' --exclude=simgpu_test.cpp");
  CHECK(found.out == "real-gpu]\n");
}

TEST_CASE("the installed sconce-simgpu keeps its libcuda.so.1 out of the library folders") {
  const TempDir prefix;
  const auto lib = prefix.path() / "lib";
  const RunResult installed =
      run_program(std::string("'" SCONCE_CMAKE "' --install '" SCONCE_BUILD_DIR
                              "' --component programs --prefix ") +
                  prefix.path().string());
  INFO(installed.err);
  REQUIRE(installed.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(lib / "libcuda.so.1"));
  CHECK(std::filesystem::exists(lib / "sconce/simgpu/libcuda.so.1"));
  const RunResult ran =
      run_program((prefix.path() / "bin/sconce-simgpu").string() + " --hide-real-gpus -- " + info);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("Simulated GPU"));
}
