// sconce-train: trains an image classifier on real images.
//   build/default/bin/sconce-train --model lenet --epochs 10

#include <torch/torch.h>

#include <iostream>
#include <optional>

#include "command_line.hpp"
#include "image_data.hpp"
#include "metrics_file.hpp"
#include "models.hpp"
#include "optimization.hpp"
#include "sconce/sconce.hpp"

namespace {

// A sconce built without CUDA's headers knows a GPU by its index only.
std::string name_of(torch::Device gpu) {
  try {
    return sconce::cuda::get_device_properties(gpu).name;
  } catch (const c10::Error&) {
    return gpu.str();
  }
}

std::string describe_gpus() {
  const int count = sconce::num_gpus();
  std::string text = std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
  for (int i = 0; i < count; ++i) {
    text += (i == 0 ? " (" : ", ") + name_of(sconce::gpu(i));
  }
  return count > 0 ? text + ")" : text;
}

void print_hardware(torch::Device device) {
  std::cout << "hardware: " << torch::get_num_threads() << " CPU threads, " << describe_gpus()
            << "; training on " << device << std::endl;
  if (device.is_cpu() && sconce::num_gpus() > 0) {
    std::cerr << "sconce-train: warning: a GPU is there but unused (--device auto uses it)\n";
  }
}

void train_classifier(const train::CommandLine& line) {
  const torch::Device device = line.torch_device();
  std::optional<train::MetricsFile> metrics;
  if (!line.out.empty()) metrics.emplace(line.out);
  const train::ImageData images = train::load_images(line.data);
  print_hardware(device);

  torch::manual_seed(line.seed);
  auto model = train::make_model(line.model, images.train.data.sizes().slice(1), images.classes);
  int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();
  std::cout << "data: " << line.data << ", " << images.train.data.size(0) << " training and "
            << images.test.data.size(0) << " test images of " << images.train.data.size(2) << "x"
            << images.train.data.size(3) << ", " << images.classes << " classes\n"
            << "model: " << line.model << ", " << parameters << " parameters" << std::endl;

  sconce::Trainer trainer({.max_epochs = line.epochs,
                           .gradient_clip_val = line.clip,
                           .precision = line.precision,
                           .accumulate_grad_batches = line.accumulate,
                           .device = device,
                           .fast_dev_run = line.fast_dev_run,
                           .log = &std::cout});
  trainer.prepare_model(*model);
  // The images are small: all of them go to the device once, not batch by batch.
  sconce::data::Batches train(trainer.prepare_batch(images.train),
                              {.batch_size = line.batch_size, .shuffle = true, .seed = line.seed});
  sconce::data::Batches test(trainer.prepare_batch(images.test), {.batch_size = 1000});

  const auto optimizer = train::make_optimizer(line.optimizer, model->parameters(),
                                               line.lr.value_or(train::default_lr(line.optimizer)));
  const int64_t steps = (train.size() + line.accumulate - 1) / line.accumulate;
  const auto schedule = train::make_schedule(line.scheduler, *optimizer, line.epochs, steps);
  std::optional<sconce::optim::ExponentialMovingAverage> ema;
  if (line.ema > 0) ema.emplace(*model, sconce::optim::EmaOptions{.decay = line.ema});
  const sconce::FitResult result = trainer.fit(model, *optimizer,
                                               {.train = train,
                                                .test = test,
                                                .scheduler = schedule.scheduler.get(),
                                                .interval = schedule.interval,
                                                .ema = ema ? &*ema : nullptr});
  if (metrics) metrics->write(result);
}

int fail(const std::string& message) {
  std::cerr << "sconce-train: " << message.substr(0, message.find('\n')) << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const train::CommandLine line = train::parse_command_line(argc, argv);
    if (!line.help.empty()) {
      std::cout << line.help;
      return 0;
    }
    train_classifier(line);
  } catch (const train::UsageError& error) {
    std::cerr << "sconce-train: " << error.what() << '\n';
    return 2;
  } catch (const c10::Error& error) {
    return fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return 0;
}
