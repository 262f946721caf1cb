#include "earlier_runs.hpp"

#include <system_error>

#include "model_file.hpp"
#include "results.hpp"
#include "run_flags.hpp"
#include "saved_run.hpp"
#include "sconce/io/atomic_file.hpp"
#include "sconce/training/checkpoint.hpp"

namespace train {

namespace {

namespace fs = std::filesystem;

void check_checkpoints(const CommandLine& line) {
  const bool has_run = !latest_checkpoint(line).empty();
  if (line.restart_schedule && !has_run) {
    throw UsageError("--restart-schedule: found no run in " + line.checkpoint.string());
  }
  if (line.resume || !has_run) return;
  throw UsageError(
      "--checkpoint: " + line.checkpoint.string() +
      " contains checkpoints from an earlier run; continue that run with --resume, or specify "
      "another folder");
}

bool is_scalar_file(const std::string& name) {
  return name == "scalars.csv" || name.starts_with("events.out.tfevents");
}

// Returns whether `--resume` continues a run. A run that was killed before its first checkpoint
// left only its flags behind.
bool continues_run(const CommandLine& line) {
  if (!line.resume) return false;
  return fs::is_regular_file(run_flags_file(line)) || !latest_checkpoint(line).empty();
}

void check_scalars(const CommandLine& line) {
  if (line.scalars.empty() || continues_run(line)) return;
  const std::string instead = line.resume
                                  ? ", and " + line.checkpoint.string() +
                                        " contains no run to continue; specify the --checkpoint "
                                        "folder of the earlier run or another --scalars folder"
                                  : "; specify another folder, or continue that run with --resume";
  std::error_code ignored;  // if the folder cannot be read, only the scalars are lost
  for (const auto& entry : fs::directory_iterator(line.scalars, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!is_scalar_file(name)) continue;
    throw UsageError("--scalars: " + line.scalars.string() + " contains the " + name + " of a run" +
                     instead);
  }
}

// Returns whether these results were written by an earlier part of the resumed run.
bool are_of_resumed_run(const fs::path& metrics, const CommandLine& line) {
  const fs::path checkpoint = line.resume ? latest_checkpoint(line) : fs::path();
  if (checkpoint.empty() || !fs::exists(metrics)) return false;
  const std::string written = sconce::io::read_file(metrics, "--out");
  return !written.empty() && metrics_text(read_saved_run(checkpoint).epochs).starts_with(written);
}

void check_results(const CommandLine& line) {
  if (line.out.empty() || line.overwrite) return;
  for (const auto* name : {metrics_name, weights_name}) {
    if (!fs::is_regular_file(line.out / name)) continue;
    if (are_of_resumed_run(line.out / metrics_name, line)) return;
    throw UsageError(
        "--out: " + line.out.string() + " contains the " + name +
        " from another run; specify another folder, or replace the files with --overwrite");
  }
}

// Prevents a mistyped path from overwriting the data or weights.
void check_export(const CommandLine& line) {
  if (!fs::is_regular_file(line.export_file) || is_program(line.export_file)) return;
  throw UsageError("--export: " + line.export_file.string() +
                   " exists and is not a program; specify another file");
}

}  // namespace

fs::path latest_checkpoint(const CommandLine& line) {
  if (line.checkpoint.empty() || !fs::is_directory(line.checkpoint)) return {};
  return sconce::Checkpoint(line.checkpoint, {.resume = true}).latest();
}

void check_earlier_runs(const CommandLine& line) {
  check_results(line);
  check_checkpoints(line);
  check_scalars(line);
  check_export(line);
}

}  // namespace train
