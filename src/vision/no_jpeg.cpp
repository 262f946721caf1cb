#include "vision/jpeg.hpp"

namespace sconce::vision {

bool has_libjpeg() {
  return false;
}

std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::FILE*, int) {
  throw NoImageLibrary("built without libjpeg-turbo: apt install libjpeg-dev, then build again");
}

}  // namespace sconce::vision
