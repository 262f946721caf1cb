#include "command_line.hpp"

#include <algorithm>
#include <string_view>

#include "arguments.hpp"
#include "validators.hpp"

namespace simgpu {

namespace {

constexpr uint64_t mib = uint64_t{1} << 20;

/// Accepts a number of bytes, or a number followed by MiB or GiB, and converts it to bytes.
CLI::Validator memory_size() {
  return CLI::Validator(
      [](std::string& text) {
        uint64_t unit = 1;
        std::string digits = text;
        for (const auto& [name, bytes] : {std::pair("MiB", mib), std::pair("GiB", 1024 * mib)}) {
          if (!text.ends_with(name)) continue;
          unit = bytes;
          digits = text.substr(0, text.size() - 3);
        }
        uint64_t count = 0;
        const bool good = apps::parse(digits, count) &&
                          count <= uint64_t{1024} * 1024 * mib / unit && count * unit >= 32 * mib;
        if (!good)
          return "must be a whole number of MiB or GiB from 32MiB to 1024GiB, not '" + text + "'";
        text = std::to_string(count * unit);
        return std::string();
      },
      "");
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  std::string late = "on";
  CLI::App app(
      "Runs a program that uses LibTorch's CUDA build, or Python with torch, on GPUs that the "
      "CPU simulates:\n  sconce-simgpu --gpus 2 -- build/default/bin/sconce-train "
      "--parallel "
      "data",
      "sconce-simgpu");
  app.add_option("--gpus", line.gpus, "Number of GPUs")
      ->transform(apps::whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--memory", line.memory, "Memory of each GPU, for example 512MiB")
      ->transform(memory_size())
      ->type_name("SIZE")
      ->default_str("8GiB");
  app.add_option(
         "--races", line.races,
         "How to handle a race: ignore the race (off), report the race (report), fail at the end "
         "(fail), throw an error (throw), or also throw if memory is freed too early but not "
         "reused (strict)")
      ->check(apps::one_of({"off", "report", "fail", "throw", "strict"}))
      ->type_name("MODE")
      ->capture_default_str();
  app.add_option("--late-copies", late,
                 "When the result of an asynchronous copy becomes visible: only after the program "
                 "waits for the copy (on) or immediately (off)")
      ->check(apps::one_of({"on", "off"}))
      ->type_name("MODE")
      ->capture_default_str();
  app.add_option("--counts", line.counts,
                 "Write the counts of the program's GPU requests to this file in JSON format")
      ->type_name("FILE");
  app.add_flag(
      "--places", line.places,
      "Show in each report where the program issued both operations; small steps take a third "
      "longer");
  app.add_option(
         "--ignore", line.ignore,
         "Ignore reports that match a line of this file, where * matches any text. Each line "
         "must follow a comment with the reason: # ...")
      ->type_name("FILE");
  app.add_option("--report", line.report,
                 "Write the reports to this file: JUnit for a .xml file name, otherwise JSON")
      ->type_name("FILE");
  app.add_flag("--hide-real-gpus", line.hide_real_gpus,
               "Start even if the machine has a GPU, and hide it from the program");
  // CLI11 would interpret a program argument such as [gpu] as one of its own lists.
  char** const end = std::find(argv, argv + argc, std::string_view("--"));
  try {
    line.text = apps::parse_arguments(app, static_cast<int>(end - argv), argv);
  } catch (const UsageError& error) {
    if (end != argv + argc) throw;
    throw UsageError(std::string(error.what()) + "; the program must come after --");
  }
  line.late_copies = late == "on";
  if (end != argv + argc) line.program.assign(end + 1, argv + argc);
  if (line.text.empty() && line.program.empty()) {
    throw UsageError("expected a program after -- (--help lists the flags)");
  }
  return line;
}

}  // namespace simgpu
