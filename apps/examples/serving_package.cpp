// Serves a network that Python compiled ahead of time. Reads rows from a file and writes the
// outputs.
#include <ATen/Version.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

using torch::inductor::AOTIModelPackageLoader;

// Throws unless the package was compiled for this environment.
void check(const char* what, const std::string& expected, const std::string& found) {
  TORCH_CHECK(found == expected, "expected ", what, " '", expected, "', got '", found, "'");
}

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fputs("usage: serving_package PROGRAM.pt2 INPUTS.pt OUTPUTS.pt\n", stderr);
    return 2;
  }
  // LibTorch wrote AOTI_DEVICE_KEY, and export_program.py wrote the other entries. No code from the
  // package has been loaded at this point.
  auto about = AOTIModelPackageLoader::load_metadata_from_package(argv[1], "model");
  check("PyTorch", about["torch"], TORCH_VERSION);
  const std::string device = about["AOTI_DEVICE_KEY"];
  const std::string best = c10::DeviceTypeName(sconce::try_gpu().type(), /*lower_case=*/true);
  if (device != "cpu") check("the device", device, best);
  check("a CPU with", about["cpu"], at::get_cpu_capability());
  AOTIModelPackageLoader program(argv[1]);

  // The machine code also assumes the strides that export_program.py used.
  const auto inputs = sconce::io::load_torch_state_dict(argv[2]);
  TORCH_CHECK(inputs.contains("x") && inputs["x"].dim() > 0, argv[2], ": expected rows named 'x'");
  const auto x = inputs["x"].contiguous();  // (N, 64)
  check("rows of", about["rows"],
        sconce::repr(x.scalar_type()) + " " + sconce::repr(x.sizes().slice(1)));

  const sconce::Stopwatch stopwatch{torch::Device(device)};
  std::vector<torch::Tensor> outputs;
  for (const auto& batch : x.split(8)) {
    outputs.push_back(program.run({batch.to(device)})[0].cpu());  // (8, 10)
  }
  sconce::io::save_torch(argv[3], torch::cat(outputs));  // (N, 10)
  std::cout << x.size(0) << " rows\n~ " << static_cast<double>(x.size(0)) / stopwatch.seconds()
            << " rows a second\n";
} catch (const std::exception& error) {
  const std::string text = error.what();  // the reason, followed by a backtrace
  std::cerr << "serving_package: " << text.substr(0, text.find('\n')) << " (" << argv[1] << ")\n";
  return 1;
}
