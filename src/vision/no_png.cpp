#include "vision/png.hpp"

namespace sconce::vision {

namespace {

[[noreturn]] void fail() {
  throw NoImageLibrary("built without libpng: apt install libpng-dev, then build again");
}

}  // namespace

bool has_libpng() {
  return false;
}

std::unique_ptr<ImageDecoder> make_png_decoder(std::FILE*) {
  fail();
}

std::string encode_png(const at::Tensor&, int) {
  fail();
}

}  // namespace sconce::vision
