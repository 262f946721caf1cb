#include "flag_rules.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "flags.hpp"
#include "models.hpp"
#include "reports.hpp"
#include "results.hpp"
#include "training_data.hpp"

namespace train {

namespace {

// A rule that applies if one of its flags is given. `error` returns a description of the problem,
// or an empty string. CLI11's needs() and excludes() can only test whether a flag is given, without
// considering its value.
struct Rule {
  std::vector<std::string> flags;
  std::string (*error)(const CommandLine&);
};

std::string error_unless(bool holds, const std::string& error) {
  return holds ? std::string() : error;
}

std::vector<std::string> needing(Needs needs) {
  std::vector<std::string> names;
  for (const auto& flag : flags()) {
    if (flag.needs == needs) names.push_back(flag.name);
  }
  return names;
}

using Line = CommandLine;
using Rules = std::vector<Rule>;

bool captures(const Line& line) {
  return line.graph || line.compile;
}

Rules data_rules() {
  return {
      {needing(Needs::pictures),
       [](const Line& line) {
         return error_unless(is_picture_folder(line.data),
                             "requires a folder of images for --data, not " + line.data);
       }},
      {needing(Needs::pictures_or_table),
       [](const Line& line) {
         return error_unless(
             is_picture_folder(line.data) || is_table(line.data),
             "requires a folder of images or a CSV file for --data, not " + line.data);
       }},
      {needing(Needs::table),
       [](const Line& line) {
         return error_unless(is_table(line.data),
                             "requires a CSV file for --data, not " + line.data);
       }},
      {{"--weights"},
       [](const Line& line) {
         return error_unless(!is_table(line.data), "requires images for --data, not " + line.data);
       }},
      {{"--data"},
       [](const Line& line) {
         return error_unless(!is_table(line.data) || !line.target.empty(),
                             line.data + " is a table and requires --target");
       }},
      {{"--model"},
       [](const Line& line) {
         const bool takes_rows = line.model == "linear" || line.model == "mlp";
         return error_unless(!is_table(line.data) || takes_rows,
                             line.model + " requires images for --data, not " + line.data +
                                 "; a table requires linear or mlp");
       }},
  };
}

Rules model_rules() {
  return {
      {{"--freeze"},
       [](const Line& line) {
         return error_unless(!line.freeze || !line.weights.empty(), "requires --weights");
       }},
      {{"--image-size"},
       [](const Line& line) {
         return error_unless(
             line.model != "lenet" || line.image_size >= 4,
             "lenet requires a size of at least 4, not " + std::to_string(line.image_size));
       }},
      {{"--model"},
       [](const Line& line) {
         return error_unless(
             !is_vision_model(line.model) || is_picture_folder(line.data),
             line.model + " requires a folder of images for --data, not " + line.data);
       }},
      {{"--gray"},
       [](const Line& line) {
         return error_unless(!is_vision_model(line.model) || !line.gray,
                             line.model + " requires color images");
       }},
      {{"--image-size"},
       [](const Line& line) {
         return error_unless(line.model != "vit_b_16" || line.image_size % 16 == 0,
                             "vit_b_16 requires a size that is a multiple of 16, not " +
                                 std::to_string(line.image_size));
       }},
  };
}

Rules device_rules() {
  return {
      {{"--parallel"},
       [](const Line& line) {
         return error_unless(line.parallel != "data" || line.device == "auto",
                             "data uses every GPU and requires --device auto, not " + line.device);
       }},
      {{"--parallel"},
       [](const Line& line) {
         return error_unless(
             line.parallel != "distributed" || !line.device.starts_with("cuda"),
             "distributed assigns a GPU to each process and requires --device auto, not " +
                 line.device);
       }},
      {{"--timeout"},
       [](const Line& line) {
         return error_unless(line.parallel == "distributed",
                             "requires --parallel distributed, not " + line.parallel);
       }},
      {{"--graph", "--compile"},
       [](const Line& line) {
         const bool is_on_cpus = line.parallel == "distributed" && line.torch_device().is_cpu();
         return error_unless(
             !captures(line) || line.parallel == "none" || is_on_cpus,
             "requires --parallel none, or distributed on CPUs, not " + line.parallel);
       }},
      {{"--graph", "--compile"},
       [](const Line& line) {
         return error_unless(!captures(line) || line.accumulate == 1,
                             "requires --accumulate 1, not " + std::to_string(line.accumulate));
       }},
      {{"--graph", "--compile"},
       [](const Line& line) {
         return error_unless(
             !captures(line) || line.scheduler != "onecycle",
             "requires a --scheduler that changes only the learning rate, not onecycle, "
             "which also changes the momentum");
       }},
      {{"--compile"},
       [](const Line& line) {
         const auto device = line.torch_device();
         return error_unless(!line.compile || device.is_cpu(),
                             "requires the CPU, but the device is " + device.str() +
                                 "; add --device cpu, or use --graph on the GPU");
       }},
      {{"--precision"},
       [](const Line& line) {
         return error_unless(line.precision != "tf32" || line.torch_device().is_cuda(),
                             "tf32 requires a GPU, but the device is cpu");
       }},
  };
}

bool is_result_of(const Line& line, const std::filesystem::path& file) {
  const auto plain = [](const std::filesystem::path& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  const std::vector<std::string> names = {metrics_name, weights_name, curve_name, confusion_name,
                                          trace_name};
  return !line.out.empty() && std::any_of(names.begin(), names.end(), [&](const auto& name) {
    return plain(line.out / name) == plain(file);
  });
}

Rules file_rules() {
  return {
      {needing(Needs::checkpoint),
       [](const Line& line) {
         return error_unless(!line.checkpoint.empty(), "requires a --checkpoint folder");
       }},
      {{"--restart-schedule"},
       [](const Line& line) {
         return error_unless(!line.restart_schedule || line.resume, "requires --resume");
       }},
      {{"--restart-schedule"},
       [](const Line& line) {
         return error_unless(!line.restart_schedule || line.scheduler != "none",
                             "requires a --scheduler other than none");
       }},
      {needing(Needs::out),
       [](const Line& line) {
         return error_unless(!line.out.empty(), "requires an --out folder");
       }},
      {{"--export"},
       [](const Line& line) {
         return error_unless(
             !is_result_of(line, line.export_file),
             line.export_file.string() + " is a file that --out writes; specify another file");
       }},
      {{"--scalars-every"},
       [](const Line& line) {
         return error_unless(!line.scalars.empty(), "requires a --scalars folder");
       }},
      {{"--checkpoint", "--scalars"},
       [](const Line& line) {
         return error_unless(!line.fast_dev_run, "cannot be used with --fast-dev-run");
       }},
  };
}

}  // namespace

void check_flag_rules(const CLI::App& app, const CommandLine& line) {
  for (const Rules& rules : {data_rules(), model_rules(), device_rules(), file_rules()}) {
    for (const auto& [names, error] : rules) {
      for (const auto& name : names) {
        if (app.count(name) == 0) continue;
        const std::string wrong = error(line);
        if (!wrong.empty()) refuse(name + ": " + wrong);
      }
    }
  }
}

}  // namespace train
