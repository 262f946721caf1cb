#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "sconce/fwd.hpp"

/// Pictures in PNG and JPEG files, with the names of `torchvision.io`. PNG needs libpng and JPEG
/// libjpeg-turbo. If sconce was built without one of them, its files are refused by a
/// c10::NotImplementedError that names the Debian package; all other errors are of other types.
namespace sconce::vision {

/// The channels of a picture that is read. Python: `torchvision.io.ImageReadMode`.
enum class ImageReadMode {
  unchanged,   ///< those of the file: gray or RGB, and alpha if any of it can be transparent
  gray,        ///< 1: colors become gray with ITU-R 601's weights, as by Pillow's `convert('L')`
  gray_alpha,  ///< 2
  rgb,         ///< 3: Pillow's `convert('RGB')`; transparency is ignored
  rgb_alpha,   ///< 4: Pillow's `convert('RGBA')`
};

/// The default of `ImageLimits::max_pixels`. Python: `PIL.Image.MAX_IMAGE_PIXELS`.
inline constexpr int64_t max_image_pixels = 89'478'485;

/// How much work a picture may request. However small its file is, reading it may take 20 bytes of
/// memory per pixel and 16 MB, and time in proportion to its pixels, for a progressive JPEG times
/// the number of its scans. Lower the limits for pictures of unknown origin.
struct ImageLimits {
  int64_t max_pixels = max_image_pixels;  ///< largest width times height
  int max_scans = 64;  ///< largest number of scans of a JPEG. Encoders write about ten.
                       ///< libjpeg-turbo: `djpeg -maxscans`
};

/// Reads a PNG or JPEG file as uint8 (C, H, W) on the CPU. The content of the
/// file, not its name, decides which of the two it is. Ignores a rotation in the EXIF data. Of an
/// animated PNG it reads the picture that programs without animation show. Colors and gray with
/// alpha of 16 bits keep their upper byte; gray of 16 bits without alpha becomes 255 above 255, as
/// in Pillow. Of a PNG the pixels are Pillow's bit for bit, of a JPEG within 2.
/// Python: `torchvision.io.read_image(path, mode)`, which returns uint16 for 16 bits, and in mode
/// unchanged the indices of a palette and the four channels of a CMYK JPEG; here both are RGB. It
/// takes a JPEG's gray from its luma and refuses alpha modes for JPEG; here alpha is 255.
/// @throw c10::Error naming the file if it:
/// - cannot be read, or is neither PNG nor JPEG (a GIF, WebP, BMP or TIFF is named);
/// - has more pixels than `limits` allow, which is checked before memory is allocated for them;
/// - has more scans than `limits` allow;
/// - is damaged or cut off.
torch::Tensor read_image(const std::filesystem::path& path,
                         ImageReadMode mode = ImageReadMode::unchanged,
                         const ImageLimits& limits = {});

/// Reads a PNG or JPEG picture from the bytes of its file, uint8 (n,) on the CPU, as `read_image`
/// does. Python: `torchvision.io.decode_image(input, mode)`.
/// @throw c10::Error as `read_image` does, or if `input` is no such tensor.
torch::Tensor decode_image(const torch::Tensor& input,
                           ImageReadMode mode = ImageReadMode::unchanged,
                           const ImageLimits& limits = {});

/// Returns the height and width of a PNG or JPEG file after reading its header alone.
/// Python: `PIL.Image.open(path).size`, which has the width first.
/// @throw c10::Error as `read_image` does, unless the damage is after the header.
std::array<int64_t, 2> read_image_size(const std::filesystem::path& path,
                                       const ImageLimits& limits = {});

/// Writes a picture as a PNG file, which appears whole or not at all. `input` is uint8 (C, H, W) on
/// the CPU: gray, gray and alpha, RGB, or RGB and alpha. `compression_level` is from 0 (fast) to 9
/// (small). Python: `torchvision.io.write_png(input, filename, compression_level)`, which takes 1
/// or 3 channels.
/// @throw c10::Error if `input` is not as above or has no pixel, if the level is another, or if the
/// file cannot be written.
void write_png(const torch::Tensor& input, const std::filesystem::path& path,
               int compression_level = 6);

}  // namespace sconce::vision
