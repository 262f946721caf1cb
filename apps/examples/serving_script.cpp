// Serves a network that Python exported as TorchScript. Reads rows from a file and writes the
// outputs.
#include <torch/script.h>
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

// Throws unless the program was exported for this environment.
void check(const char* what, const std::string& expected, const std::string& found) {
  TORCH_CHECK(found == expected, "expected ", what, " '", expected, "', got '", found, "'");
}

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fputs("usage: serving_script PROGRAM.ts INPUTS.pt OUTPUTS.pt\n", stderr);
    return 2;
  }
  torch::jit::ExtraFilesMap about = {{"torch", ""}, {"rows", ""}};  // from export_program.py
  const auto device = sconce::try_gpu();  // moves the weights there from any device
  auto program = torch::jit::load(argv[1], device, about);
  check("PyTorch", about["torch"], TORCH_VERSION);

  const auto inputs = sconce::io::load_torch_state_dict(argv[2]);
  TORCH_CHECK(inputs.contains("x") && inputs["x"].dim() > 0, argv[2], ": expected rows named 'x'");
  const auto x = inputs["x"];  // (N, 64)
  check("rows of", about["rows"],
        sconce::repr(x.scalar_type()) + " " + sconce::repr(x.sizes().slice(1)));

  const torch::NoGradGuard no_grad;
  const sconce::Stopwatch stopwatch(device);
  std::vector<torch::Tensor> outputs;
  for (const auto& batch : x.split(8)) {
    outputs.push_back(program.forward({batch.to(device)}).toTensor().cpu());  // (8, 10)
  }
  sconce::io::save_torch(argv[3], torch::cat(outputs));  // (N, 10)
  std::cout << x.size(0) << " rows\n~ " << static_cast<double>(x.size(0)) / stopwatch.seconds()
            << " rows a second\n";
} catch (const c10::Error& error) {
  std::cerr << "serving_script: " << error.what_without_backtrace() << " (" << argv[1] << ")\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "serving_script: " << error.what() << " (" << argv[1] << ")\n";
  return 1;
}
