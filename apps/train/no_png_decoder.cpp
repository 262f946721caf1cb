#include "picture_decoder.hpp"

namespace train {

bool has_libpng() {
  return false;
}

std::unique_ptr<PictureDecoder> make_png_decoder(std::FILE*) {
  throw std::runtime_error("built without libpng: apt install libpng-dev, then build again");
}

}  // namespace train
