#include "run_checkpoint.hpp"

#include <csignal>

#include "results.hpp"
#include "run_flags.hpp"

namespace train {

namespace {

// Whether SIGTERM has arrived. Launchers and queues send it some time before they kill a process.
volatile std::sig_atomic_t terminated = 0;

}  // namespace

void RunSaving::on_fit_begin(sconce::Fit& fit) {
  if (fit.process_group.rank() == 0) write_run_flags(line_);
}

void RunSaving::on_after_step(sconce::Fit& fit) {
  if (terminated != 0) fit.stop();
}

std::optional<sconce::Checkpoint> open_checkpoint(const CommandLine& line,
                                                  const sconce::distributed::ProcessGroup& group) {
  if (line.checkpoint.empty()) return {};
  std::optional<sconce::Checkpoint> checkpoint;
  checkpoint.emplace(line.checkpoint,
                     sconce::CheckpointOptions{.resume = line.resume, .process_group = group});
  if (group.rank() == 0) check_writable(run_flags_file(line), "--checkpoint");
  if (!checkpoint->latest().empty()) check_run_flags(line);
  std::signal(SIGTERM, [](int signal) {
    terminated = 1;
    std::signal(signal, SIG_DFL);  // a second SIGTERM ends a process that waits for a lost one
  });
  return checkpoint;
}

std::optional<SavedRun> saved_run(const std::optional<sconce::Checkpoint>& checkpoint) {
  if (!checkpoint || checkpoint->latest().empty()) return {};
  return read_saved_run(checkpoint->latest());
}

}  // namespace train
