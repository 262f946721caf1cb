// Runs Trainer scripts and traces their events: trainer-scripts SCRIPTS TRACES [--values]
// SCRIPTS contains one JSON script per line and is written by tests/trainer_scripts/run.py.
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "support/temp_dir.hpp"
#include "trainer_scripts/world.hpp"

namespace {

struct NoWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: trainer-scripts SCRIPTS TRACES [--values]\n";
    return 2;
  }
  torch::set_num_threads(1);
  NoWarnings handler;
  const c10::WarningUtils::WarningHandlerGuard guard(&handler);
  // An in-memory folder, if available, so that writing files does not cause disk writes.
  const std::filesystem::path parent = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  std::ifstream scripts(arguments[1]);
  std::ofstream traces(arguments[2]);
  for (std::string line; std::getline(scripts, line);) {
    const auto script = nlohmann::json::parse(line);
    traces << "= " << script.at("id").get<int64_t>() << std::endl;  // flushed in case of a crash
    trainer_scripts::Trace trace(count > 3);
    try {
      const sconce::test::TempDir folder(parent);
      trainer_scripts::World(script, trace, folder.path()).run();
    } catch (const std::exception& error) {
      trace.line(std::string("!! ") + error.what());
    }
    traces << trace.take();
  }
  return 0;
}
