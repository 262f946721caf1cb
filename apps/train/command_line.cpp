#include "command_line.hpp"

#include <limits>
#include <map>
#include <utility>

#include "arguments.hpp"
#include "models.hpp"
#include "optimization.hpp"
#include "sconce/devices.hpp"
#include "training_data.hpp"
#include "validators.hpp"

namespace train {

namespace {

using apps::number;
using apps::one_of;
using apps::parse;
using apps::whole_number;

const std::map<std::string, sconce::amp::Precision>& precisions() {
  static const std::map<std::string, sconce::amp::Precision> named = {
      {"fp32", sconce::amp::Precision::fp32},
      {"tf32", sconce::amp::Precision::tf32},
      {"bf16", sconce::amp::Precision::bf16},
      {"fp16", sconce::amp::Precision::fp16}};
  return named;
}

CLI::Validator device_name() {
  return CLI::Validator(
      [](std::string& text) {
        int index = -1;
        const bool is_index = text.rfind("cuda:", 0) == 0 && parse(text.substr(5), index);
        if (text == "auto" || text == "cpu") return std::string();
        if (is_index && index >= 0 && index < sconce::num_gpus() &&
            text == "cuda:" + std::to_string(index)) {
          return std::string();
        }
        return "takes auto, cpu or cuda:N with N below the number of GPUs, here " +
               std::to_string(sconce::num_gpus()) + ", not '" + text + "'";
      },
      "");
}

CLI::Validator data_name() {
  return CLI::Validator(
      [](std::string& text) {
        if (is_named(text) || std::filesystem::is_directory(text) || is_table(text)) {
          return std::string();
        }
        return "takes digits, fashion-mnist or a folder of IDX files or pictures, or a CSV file, " +
               ("not '" + text + "'");
      },
      "");
}

// An unset variable of a shell gives an empty text.
CLI::Validator path_of(const std::string& what) {
  return CLI::Validator(
      [=](std::string& text) {
        return text.empty() ? "takes " + what + ", not ''" : std::string();
      },
      "");
}

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what.substr(0, what.find('\n')) + " (--help lists the flags)");
}

constexpr uint64_t int_max = std::numeric_limits<int>::max();

void add_limits(CLI::App& app, ReadingLimits& limits) {
  app.add_option("--max-csv-bytes", limits.csv_bytes,
                 "Most bytes of memory for reading a table; by default 16 times the size of its "
                 "file and 64 MiB")
      ->transform(whole_number(1, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  app.add_option("--max-pixels", limits.image.max_pixels, "Most pixels of a picture")
      ->transform(whole_number(1, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
}

// Adds the flags for the images or the table.
void add_data_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->group("Data");
  app.add_option(
         "--data", line.data,
         "Examples to train on: the digits that come with sconce, Fashion-MNIST, a folder, or a "
         "CSV file with a line of names. The folder contains MNIST's four IDX files, plain or "
         "gzipped, or a subfolder of PNG and JPEG pictures for each class")
      ->check(data_name())
      ->type_name("digits|fashion-mnist|DIR|FILE");
  app.add_option("--target", line.target, "Column of the table to predict from the others")
      ->type_name("COLUMN");
  app.add_option("--categories", line.categories, "Column whose numbers are categories")
      ->allow_extra_args(false)
      ->type_name("COLUMN");
  app.add_option("--drop", line.drop, "Column of the table to leave out")
      ->allow_extra_args(false)
      ->type_name("COLUMN");
  app.add_option("--image-size", line.image_size, "Height and width of the resized pictures")
      ->transform(whole_number(1, 1024))
      ->type_name("N")
      ->default_str("224 for the networks of torchvision, else 32");
  app.add_flag("--grey", line.grey, "Convert the pictures to grey");
  app.add_option("--test-fraction", line.test_fraction,
                 "Fraction of the pictures or rows of each class to test on; --seed chooses them")
      ->check(number("a number above 0 and below 1",
                     [](double value) { return value > 0 && value < 1; }))
      ->type_name("X");
  app.add_flag("--augment", line.augment,
               "Shift training pictures at random by up to an eighth of their size, and mirror "
               "them at random");
  app.add_flag("--skip-bad", line.skip_bad, "Leave out bad rows, and files that are no pictures");
  app.add_option("--workers", line.workers, "Number of threads that read pictures ahead")
      ->transform(whole_number(0, 1024))
      ->type_name("N");
  add_limits(app, line.limits);
}

// Adds the flags for the model and its training.
void add_training_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->group("Training");
  app.add_option("--model", line.model, "Network to train")
      ->check(one_of(model_names()))
      ->type_name(CLI::detail::join(model_names(), "|"))
      ->default_str("mlp for a table, else lenet");
  app.add_option("--weights", line.weights,
                 "Weights to begin with: a safetensors file, or a state dict that Python's "
                 "torch.save wrote. A last layer for another number of classes is replaced")
      ->check(path_of("a file"))
      ->type_name("FILE")
      ->default_str("");
  app.add_flag("--freeze", line.freeze,
               "Train only the last layer; the others stay as they are in --weights");
  app.add_option("--epochs", line.epochs, "Number of passes over the training data")
      ->transform(whole_number(1, int_max))
      ->type_name("N");
  app.add_option("--batch-size", line.batch_size, "Number of examples in a batch of each process")
      ->transform(whole_number(1, int_max))
      ->type_name("N");
  app.add_option("--optimizer", line.optimizer, "Optimizer; sgd has a momentum of 0.9")
      ->check(one_of(optimizer_names()))
      ->type_name(CLI::detail::join(optimizer_names(), "|"));
  app.add_option("--lr", line.lr, "Learning rate; by default 0.05 for sgd, Python's for the others")
      ->check(number("a number above 0", [](double value) { return value > 0; }))
      ->type_name("X");
  app.add_option("--scheduler", line.scheduler,
                 "Schedule of the learning rate: none keeps it, step divides it by 10 after each "
                 "third of the epochs, cosine lowers it to 0, onecycle raises it to --lr and then "
                 "lowers it, after each step")
      ->check(one_of(scheduler_names()))
      ->type_name(CLI::detail::join(scheduler_names(), "|"));
  app.add_option("--precision", line.precision_name,
                 "Precision of the network; tf32 needs a GPU, fp16 scales the losses")
      ->check(one_of({"fp32", "tf32", "bf16", "fp16"}))
      ->type_name("fp32|tf32|bf16|fp16");
  app.add_option("--clip", line.clip, "Largest norm of all gradients together; 0 for no clipping")
      ->check(number("a number of at least 0", [](double value) { return value >= 0; }))
      ->type_name("X");
  app.add_option("--accumulate", line.accumulate,
                 "Number of batches for each step, which uses the mean of their gradients")
      ->transform(whole_number(1, int_max))
      ->type_name("N");
  app.add_option("--ema", line.ema,
                 "Decay of an average of the weights; the average is tested and saved instead of "
                 "the weights; 0 for no average")
      ->check(number("a number from 0 to below 1",
                     [](double value) { return value >= 0 && value < 1; }))
      ->type_name("X");
  app.add_option("--seed", line.seed, "Seed of the initial weights and the order of the examples")
      ->transform(whole_number(0, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  app.add_flag("--fast-dev-run", line.fast_dev_run,
               "Train and test on one batch only, to check that everything runs");
}

// Adds the flags for devices and processes.
void add_device_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->group("Devices");
  app.add_option("--device", line.device,
                 "Device to train on; auto is the first GPU, or the CPU without a GPU")
      ->check(device_name())
      ->type_name("auto|cpu|cuda:N");
  app.add_option(
         "--parallel", line.parallel,
         "How to train on several devices. data: one process splits each batch over all GPUs; "
         "distributed: the processes of torchrun, srun or mpirun train on batches of their own")
      ->check(one_of({"none", "data", "distributed"}))
      ->type_name("none|data|distributed");
  app.add_option("--timeout", line.timeout,
                 "Seconds after which a lost process ends the others, with --parallel distributed")
      ->check(number("a number from 0.001 to 1000000",
                     [](double value) { return value >= 0.001 && value <= 1e6; }))
      ->type_name("SECONDS");
  app.add_flag(
      "--graph", line.graph,
      "Capture a step and replay it: on a GPU as a CUDA graph, on the CPU without autograd");
}

// Adds the flags for saving and resuming a run.
void add_saving_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->group("Checkpoints");
  app.add_option("--checkpoint", line.checkpoint,
                 "Folder in which the run is saved after each epoch, and when SIGTERM ends it")
      ->check(path_of("a folder"))
      ->type_name("DIR")
      ->default_str("");
  app.add_option("--save-every", line.save_every,
                 "Number of steps between saves within an epoch; 0 saves after each epoch only")
      ->transform(whole_number(0, int_max))
      ->type_name("N");
  app.add_flag("--resume", line.resume,
               "Continue the run in the --checkpoint folder; start a new one if it has none");
  app.add_flag("--restart-schedule", line.restart_schedule,
               "Resume a run with another number of --epochs: begin a new schedule of the learning "
               "rate over the epochs that remain");
}

// Adds the flags for results and reports.
void add_report_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->group("Results and reports");
  app.add_option("--out", line.out,
                 "Folder for metrics.csv, model.safetensors and the charts training.svg and "
                 "confusion.svg; by default none is written")
      ->check(path_of("a folder"))
      ->type_name("DIR")
      ->default_str("");
  app.add_flag("--overwrite", line.overwrite,
               "Replace the files of an earlier run in the --out folder, each when the new one is "
               "complete");
  app.add_option("--scalars", line.scalars, "Folder for TensorBoard's event files and scalars.csv")
      ->check(path_of("a folder"))
      ->type_name("DIR")
      ->default_str("");
  app.add_option("--scalars-every", line.scalars_every,
                 "Number of steps between two values of loss_step and lr_step in the --scalars "
                 "folder; 0 writes the values of epochs only")
      ->transform(whole_number(0, int_max))
      ->type_name("N");
  app.add_option("--profile", line.profile,
                 "Number of steps to record in trace.json in the --out folder, for "
                 "chrome://tracing or Perfetto; 0 for none")
      ->transform(whole_number(0, int_max))
      ->type_name("N");
  app.add_flag("--memory", line.memory, "Print the peak memory at the end");
  app.add_flag(
      "--summary", line.summary,
      "Print the model's layers, output shapes, parameters and memory before the training");
  app.add_flag(
      "--live-loss", line.live_loss,
      "Show the loss of the last batch beside the progress bar; it is read from the device "
      "at most twice a second");
}

CLI::App* add_predict(CLI::App& app, PredictLine& predict) {
  app.option_defaults()->group("Options");
  CLI::App* command = app.add_subcommand(
      "predict", "Print the classes of pictures, or the targets of rows, by a training's weights");
  command->add_option("--weights", predict.weights, "File model.safetensors of an --out folder")
      ->required()
      ->check(path_of("a file"))
      ->type_name("FILE");
  add_limits(*command, predict.limits);
  command->add_option("INPUT", predict.files, "PNG, JPEG or CSV files")->required()->type_name("");
  return command;
}

// Writes the defaults into the descriptions. CLI11 writes them beside the type, where DIR=digits
// would look like syntax.
void describe_defaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_size() == 0 || option->get_default_str().empty()) continue;
    option->description(option->get_description() + " (default: " + option->get_default_str() +
                        ")");
    option->default_str("");
  }
}

void check_data_flags(const CLI::App& app, const CommandLine& line) {
  const auto check = [&](bool holds, const std::vector<std::string>& flags, const char* needed) {
    for (const auto& flag : flags) {
      if (!holds && app.count(flag) > 0) {
        refuse(flag + ": needs " + needed + " as --data, not " + line.data);
      }
    }
  };
  const bool is_folder = is_picture_folder(line.data);
  check(is_folder, {"--image-size", "--grey", "--augment", "--workers", "--max-pixels"},
        "a folder of pictures");
  check(is_folder || is_table(line.data), {"--test-fraction", "--skip-bad"},
        "a folder of pictures or a CSV file");
  check(is_table(line.data), {"--target", "--categories", "--drop", "--max-csv-bytes"},
        "a CSV file");
  if (!is_table(line.data)) return;
  check(false, {"--weights"}, "pictures");
  if (line.target.empty()) refuse("--data: " + line.data + " is a table and needs a --target");
  if (line.model != "linear" && line.model != "mlp") {
    refuse("--model: " + line.model + " needs pictures as --data, not " + line.data +
           "; a table takes linear or mlp");
  }
}

void check_model_flags(const CommandLine& line) {
  if (line.freeze && line.weights.empty()) refuse("--freeze: needs --weights");
  if (line.model == "lenet" && line.image_size < 4) {
    refuse("--image-size: lenet takes 4 or more, not " + std::to_string(line.image_size));
  }
  if (!is_of_vision(line.model)) return;
  if (!is_picture_folder(line.data)) {
    refuse("--model: " + line.model + " needs a folder of pictures as --data, not " + line.data);
  }
  if (line.grey) refuse("--grey: " + line.model + " takes pictures in color");
  if (line.model == "vit_b_16" && line.image_size % 16 != 0) {
    refuse("--image-size: vit_b_16 takes a multiple of 16, not " + std::to_string(line.image_size));
  }
}

void check_device_flags(const CLI::App& app, const CommandLine& line) {
  if (line.parallel == "data" && line.device != "auto") {
    refuse("--parallel: data uses every GPU and needs --device auto, not " + line.device);
  }
  if (line.parallel == "distributed" && line.device.starts_with("cuda")) {
    refuse("--parallel: distributed chooses the GPU of each process and needs --device auto, not " +
           line.device);
  }
  if (app.count("--timeout") > 0 && line.parallel != "distributed") {
    refuse("--timeout: needs --parallel distributed, not " + line.parallel);
  }
  if (line.graph && line.parallel != "none") {
    refuse("--graph: needs --parallel none, not " + line.parallel);
  }
  if (line.graph && line.accumulate > 1) {
    refuse("--graph: needs --accumulate 1, not " + std::to_string(line.accumulate));
  }
  if (line.graph && line.scheduler == "onecycle") {
    refuse(
        "--graph: needs a --scheduler that changes only the learning rate, not onecycle, which "
        "also changes the momentum");
  }
  if (line.precision == sconce::amp::Precision::tf32 && !line.torch_device().is_cuda()) {
    refuse("--precision: tf32 needs a GPU, but the device is cpu");
  }
}

void check_file_flags(const CLI::App& app, const CommandLine& line) {
  for (const char* flag : {"--save-every", "--resume"}) {
    if (app.count(flag) > 0 && line.checkpoint.empty()) {
      refuse(std::string(flag) + ": needs a --checkpoint folder");
    }
  }
  if (line.restart_schedule && !line.resume) refuse("--restart-schedule: needs --resume");
  if (line.restart_schedule && line.scheduler == "none") {
    refuse("--restart-schedule: needs a --scheduler other than none");
  }
  for (const char* flag : {"--overwrite", "--profile"}) {
    if (app.count(flag) > 0 && line.out.empty()) {
      refuse(std::string(flag) + ": needs an --out folder");
    }
  }
  if (app.count("--scalars-every") > 0 && line.scalars.empty()) {
    refuse("--scalars-every: needs a --scalars folder");
  }
  for (const char* flag : {"--checkpoint", "--scalars"}) {
    if (line.fast_dev_run && app.count(flag) > 0) {
      refuse(std::string(flag) + ": cannot be used with --fast-dev-run");
    }
  }
}

}  // namespace

torch::Device CommandLine::torch_device(const sconce::distributed::ProcessGroup& group) const {
  return device == "auto" ? group.device() : torch::Device(device);
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app("Trains on images or a table and reports loss, metrics and speed.", "sconce-train");
  app.option_defaults()->always_capture_default();
  add_data_flags(app, line);
  add_training_flags(app, line);
  add_device_flags(app, line);
  add_saving_flags(app, line);
  add_report_flags(app, line);
  PredictLine predict;
  const CLI::App* command = add_predict(app, predict);
  describe_defaults(app);
  line.help = apps::parse_arguments(app, argc, argv);
  if (!line.help.empty()) return line;
  line.precision = precisions().at(line.precision_name);
  if (command->parsed()) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() > 0) refuse(option->get_name() + ": cannot be used with predict");
    }
    line.predict = predict;
    return line;
  }
  if (is_of_vision(line.model) && app.count("--image-size") == 0) line.image_size = 224;
  if (is_table(line.data) && app.count("--model") == 0) line.model = "mlp";
  check_data_flags(app, line);
  check_model_flags(line);
  check_device_flags(app, line);
  check_file_flags(app, line);
  return line;
}

std::string with_flags(std::string error) {
  const std::pair<std::string, std::string> flags[] = {
      {"(max_bytes)", "(--max-csv-bytes)"}, {"(ImageLimits::max_pixels)", "(--max-pixels)"}};
  for (const auto& [option, flag] : flags) {
    const size_t place = error.find(option);
    if (place != error.npos) error.replace(place, option.size(), flag);
  }
  return error;
}

}  // namespace train
