// Serves a network that was recorded in C++, without using the network's class. Reads rows from a
// file and writes the outputs.
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fputs("usage: serving_recorded PROGRAM.safetensors INPUTS.pt OUTPUTS.pt\n", stderr);
    return 2;
  }
  const auto program = sconce::program::Program::load(argv[1]);
  for (const auto& input : program.inputs()) {
    std::cout << input.name << ": " << sconce::repr(input.dtype) << ' ' << sconce::repr(input.shape)
              << '\n';  // -1 means a dynamic size
  }

  const auto x = sconce::io::load_torch_state_dict(argv[2])["x"];  // (N, 64)
  const sconce::Stopwatch stopwatch(program.device());
  std::vector<torch::Tensor> outputs;
  for (const auto& batch : x.split(8)) {
    outputs.push_back(program.run({batch.to(program.device())})[0].cpu());  // (8, 10)
  }
  sconce::io::save_torch(argv[3], torch::cat(outputs));  // (N, 10)
  std::cout << x.size(0) << " rows\n~ " << static_cast<double>(x.size(0)) / stopwatch.seconds()
            << " rows a second\n";
} catch (const c10::Error& error) {
  std::cerr << "serving_recorded: " << error.what_without_backtrace() << '\n';
  return 1;
}
