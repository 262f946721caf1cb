// sconce-train trains on images or a table, and uses the result to classify images or to make
// predictions for rows.
//   build/default/bin/sconce-train --model lenet --epochs 10

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "command_line.hpp"
#include "fail.hpp"
#include "predict.hpp"
#include "sconce/tuned_memory.hpp"
#include "sconce/tuned_threads.hpp"
#include "standard_output.hpp"
#include "training_run.hpp"

namespace {

// Turns off the log that LibTorch's profiler writes to standard error, unless the user has set a
// log level.
void quiet_profiler() {
  ::setenv("KINETO_LOG_LEVEL", "7", /*overwrite=*/0);
}

const char* name_of(int signal) {
  if (signal == SIGINT) return "SIGINT";
  return signal == SIGUSR1 ? "SIGUSR1" : "SIGTERM";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sconce::tune_memory();
    const train::CommandLine line = train::parse_command_line(argc, argv);
    if (!line.help.empty()) {
      std::cout << line.help;
    } else if (line.predict) {
      sconce::tune_threads();
      train::predict(*line.predict, std::cout);
    } else if (quiet_profiler(); const int signal = train::TrainingRun(line).run()) {
      std::cerr << "sconce-train: stopped by " << name_of(signal) << "; --resume continues from "
                << line.checkpoint.string() << '\n';
      return 128 + signal;  // as in a shell, because the run is not finished
    }
    apps::check_standard_output();
  } catch (const train::UsageError& error) {
    return apps::fail("sconce-train", error.what(), 2);
  } catch (const std::exception& error) {
    return apps::fail("sconce-train", train::with_flags(error.what()));
  }
  return 0;
}
