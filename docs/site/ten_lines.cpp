// Each reference page starts with its function from this file. A test compiles and runs them all.
#include <torch/torch.h>
#include <iostream>
#include <sconce/sconce.hpp>

void devices() {
  sconce::seed_everything(0);
  const auto device = sconce::try_gpu();  // the CPU if there is no GPU
  const auto x = torch::rand({512, 512}, device);
  const sconce::Stopwatch watch(device);  // waits for the device at both ends
  const auto y = x.mm(x);
  std::cout << sconce::num_gpus() << " GPUs; " << watch.seconds() << " s on " << device << '\n';
  std::cout << sconce::repr(y.slice(0, 0, 2).slice(1, 0, 2)) << '\n';  // as Python prints it
}

void amp() {
  torch::nn::Linear model(20, 2);
  sconce::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.1));
  sconce::amp::GradScaler scaler({.device = torch::kCPU});
  torch::Tensor loss;
  {
    const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kHalf});
    loss = model->forward(torch::randn({64, 20})).square().mean();
  }
  scaler.scale(loss).backward();
  scaler.step(sgd), scaler.update();
}

void optim() {
  torch::nn::Linear model(20, 2);
  sconce::optim::AdamW adamw(model->parameters(), torch::optim::AdamWOptions(1e-3));
  sconce::optim::lr_scheduler::CosineAnnealingLR cosine(adamw, /*T_max=*/10);
  sconce::optim::ExponentialMovingAverage average(*model, {.decay = 0.99});
  for (int epoch = 0; epoch < 10; ++epoch) {
    adamw.zero_grad();
    model->forward(torch::randn({64, 20})).square().mean().backward();
    adamw.step(), average.update(), cosine.step();
  }
}

void nn() {
  sconce::nn::LazyConv2d conv(sconce::nn::LazyConv2dOptions(8, 3).padding(1));
  torch::nn::Sequential net(conv, torch::nn::ReLU(), torch::nn::Flatten(),
                            sconce::nn::LazyLinear(10));
  net->forward(torch::rand({2, 3, 8, 8}))[0][0].backward();  // infers the sizes from the input
  sconce::nn::clip_grad_norm_(net->parameters(), /*max_norm=*/1.0);
  const auto state = sconce::nn::state_dict(*net);  // "0.weight", "0.bias", "3.weight", "3.bias"
  sconce::nn::load_state_dict(*net, state);
  sconce::nn::requires_grad_(*conv, false);  // freezes the layer
}

void data() {
  const auto x = torch::randn({1000, 20});
  const sconce::data::Dataset dataset{x, x.select(1, 0).gt(0).to(torch::kLong)};
  const auto parts = sconce::data::random_split(dataset, {0.8, 0.2});
  const sconce::data::Batches train(parts[0], {.batch_size = 32, .shuffle = true});
  const sconce::data::Batches test(parts[1], {.batch_size = 100});
  for (const auto& [inputs, targets] : train) {
    if (inputs.size(0) < 32) std::cout << "the last batch has " << targets.size(0) << " rows\n";
  }
  std::cout << train.size() << " and " << test.size() << " batches\n";
}

void distributed() {
  const auto group = sconce::distributed::ProcessGroup::init();  // from torchrun, or one process
  torch::nn::Linear net(20, 2);
  net->to(group.device());
  sconce::nn::DistributedDataParallel model(net, group);
  sconce::data::DistributedSampler sampler(/*dataset_size=*/1000, group);
  model.forward(torch::randn({32, 20}, group.device())).sum().backward();  // averages gradients
  group.all_reduce(net->weight.grad());
  std::cout << "rank " << group.rank() << " of " << group.world_size() << '\n';
}

void vision() {
  namespace transforms = sconce::vision::transforms;
  const transforms::Compose augment(transforms::RandomResizedCrop({32, 32}),
                                    transforms::RandomHorizontalFlip());
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(0);
  const auto pictures = augment(torch::rand({4, 3, 48, 48}), generator);  // (N, C, H, W)
  auto net = sconce::vision::models::resnet18({.num_classes = 3});        // torchvision's
  std::cout << net->forward(pictures).sizes() << '\n';
}

void io() {
  torch::nn::Linear net(20, 2);
  const auto state = sconce::nn::state_dict(*net);
  sconce::io::save_safetensors("net.safetensors", state);  // for safetensors.torch.load_file
  sconce::nn::load_state_dict(*net, sconce::io::load_safetensors("net.safetensors"));
  sconce::io::save_torch("net.pt", state);  // for torch.load(path, weights_only=True)
  sconce::nn::load_state_dict(*net, sconce::io::load_torch_state_dict("net.pt"));
}

void program() {
  torch::nn::Sequential net(torch::nn::Linear(20, 8), torch::nn::Dropout(),
                            torch::nn::Linear(8, 2));
  net->eval();
  const auto x = torch::randn({4, 20});  // an example, whose first dimension may have any size
  sconce::program::record("program.safetensors", net, {{"x", x}}, {.dynamic_shapes = {{"x", 0}}});
  const auto recorded = sconce::program::Program::load("program.safetensors");
  const auto output = recorded.run({torch::randn({100, 20})})[0];  // runs without the network
  std::cout << recorded.outputs()[0].name << ' ' << output.sizes() << '\n';
}

void cuda() {
  const auto device = sconce::try_gpu();
  sconce::cuda::reset_peak_memory_stats(device);
  torch::randn({1000, 1000}, device).square().sum().item<float>();
  const auto memory = sconce::cuda::memory_stats(device);  // on the CPU: of the process
  std::cout << memory.max_allocated / (1 << 20) << " MiB at most\n";
  if (device.is_cuda()) std::cout << sconce::cuda::get_device_properties(device).name << '\n';
  sconce::cuda::empty_cache();
}

void training() {
  const auto x = torch::randn({1000, 20}), y = x.select(1, 0).gt(0).to(torch::kLong);
  const sconce::data::Batches batches({x, y}, {.batch_size = 50});
  torch::nn::Sequential net(torch::nn::Linear(20, 32), torch::nn::ReLU(), torch::nn::Linear(32, 2));
  sconce::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-2));
  sconce::EarlyStopping stopping("test_loss", {.patience = 2});
  sconce::EpochLogger lines(std::cout);
  sconce::Trainer trainer({.max_epochs = 3});
  trainer.fit(net, adam, {.train = batches, .test = batches, .callbacks = {&stopping, &lines}});
  const auto outputs = trainer.predict(net, batches);
}

void metrics() {
  sconce::metrics::Accuracy accuracy({.top_k = 2});
  sconce::metrics::ConfusionMatrix matrix({.num_classes = 5});
  for (int batch = 0; batch < 4; ++batch) {
    const auto logits = torch::randn({32, 5});
    const auto classes = torch::randint(5, {32}, torch::kLong);
    accuracy.update(logits, classes);  // reads nothing from the device
    matrix.update(logits, classes);
  }
  std::cout << accuracy.compute().item<double>() << '\n' << matrix.compute() << '\n';
}

void report() {
  const auto x = torch::randn({1000, 20}), y = x.select(1, 0).gt(0).to(torch::kLong);
  const sconce::data::Batches batches({x, y}, {.batch_size = 50});
  torch::nn::Sequential net(torch::nn::Linear(20, 32), torch::nn::ReLU(), torch::nn::Linear(32, 2));
  std::cout << sconce::summary(net, x);
  sconce::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-2));
  sconce::ProgressBar bar(std::cout);
  sconce::TrainingCurve curve("training.svg");
  sconce::ScalarLogger scalars("runs/first");  // for TensorBoard, and scalars.csv
  const sconce::FitData data = {.train = batches, .callbacks = {&bar, &curve, &scalars}};
  sconce::Trainer({.max_epochs = 2}).fit(net, adam, data);
}
