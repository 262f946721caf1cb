#include "picture_decoder.hpp"

namespace train {

bool has_libjpeg() {
  return false;
}

std::unique_ptr<PictureDecoder> make_jpeg_decoder(std::FILE*) {
  throw std::runtime_error(
      "built without libjpeg-turbo: apt install libjpeg-dev, then build again");
}

}  // namespace train
