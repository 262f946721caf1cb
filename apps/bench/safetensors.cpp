// Loading a safetensors file, mapped, with a sum over every tensor, and saving its tensors, for
// safetensors_file.py, which runs this in turn with Python:
//   bench-safetensors FILE COPY
// Prints a line "name seconds" each; the sync, which Python does not make, is apart.
#include <dlfcn.h>
#include <torch/torch.h>
#include <unistd.h>

#include <iostream>

#include "sconce/io/safetensors.hpp"
#include "sconce/stopwatch.hpp"

namespace {

double seconds_in_sync = 0;

}  // namespace

// The linker takes this for the library's calls.
extern "C" int fsync(int fd) {
  const sconce::Stopwatch watch;
  const int result = reinterpret_cast<decltype(fsync)*>(dlsym(RTLD_NEXT, "fsync"))(fd);
  seconds_in_sync += watch.seconds();
  return result;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench-safetensors FILE COPY\n";
    return 2;
  }
  double sum = 0;
  sconce::Stopwatch watch;
  const auto state = sconce::io::load_safetensors(argv[1]);
  for (const auto& item : state) sum += item.value().sum().item<double>();
  std::cout.precision(12);
  std::cout << "sconce-load " << watch.seconds() << '\n';
  watch.restart();
  sconce::io::save_safetensors(argv[2], state);
  std::cout << "sconce-save " << watch.seconds() - seconds_in_sync << "\nsconce-sync "
            << seconds_in_sync << "\nsconce-sum " << sum << '\n';
}
