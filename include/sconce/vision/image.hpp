#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "sconce/fwd.hpp"

/// Functions for PNG and JPEG images, with the same names as in `torchvision.io`. PNG requires
/// libpng, and JPEG requires libjpeg-turbo. If sconce was built without the required library,
/// reading or writing an image throws a c10::NotImplementedError whose message contains the name of
/// the library's Debian package. No other error is a c10::NotImplementedError.
namespace sconce::vision {

/// Channels of the returned image.
/// Python: `torchvision.io.ImageReadMode`.
enum class ImageReadMode {
  unchanged,   ///< as in the file: gray or RGB, plus alpha if any pixel can be transparent
  gray,        ///< 1: colors are converted with ITU-R 601 weights, like Pillow's `convert('L')`
  gray_alpha,  ///< 2
  rgb,         ///< 3: like Pillow's `convert('RGB')`; transparency is ignored
  rgb_alpha,   ///< 4: like Pillow's `convert('RGBA')`
};

/// Default of `ImageLimits::max_pixels`. Python: `PIL.Image.MAX_IMAGE_PIXELS`.
inline constexpr int64_t max_image_pixels = 89'478'485;

/// Limits the cost of reading an image. Regardless of the file size, reading an image uses at most
/// 20 bytes of memory per pixel plus 16 MB. Reading time is proportional to the number of pixels
/// and, for a progressive JPEG, to the number of scans. Lower the limits for images from untrusted
/// sources.
struct ImageLimits {
  int64_t max_pixels = max_image_pixels;  ///< maximum width times height
  int max_scans = 64;  ///< maximum number of scans in a JPEG. Encoders write about ten scans.
                       ///< libjpeg-turbo: `djpeg -maxscans`
};

/// Reads a PNG or JPEG file into a uint8 tensor of shape `(C, H, W)` on the CPU. The format is
/// detected from the file's contents, regardless of the file name. Any EXIF rotation is ignored.
/// For an animated PNG, the still image is returned. 16-bit colors, and 16-bit gray values with
/// alpha, are reduced to their upper byte. 16-bit gray values without alpha are clamped to 255, as
/// in Pillow. Pixel values are identical to Pillow's for PNG and differ by at most 2 for JPEG.
///
/// Python: `torchvision.io.read_image(path, mode)`. For 16-bit images, torchvision returns uint16.
/// In mode `unchanged`, torchvision returns the indices of a palette and the four channels of a
/// CMYK JPEG, whereas this function converts both to RGB. torchvision reads the gray values of a
/// JPEG from its luma and does not support alpha modes for JPEG, whereas this function sets alpha
/// to 255.
/// @throw c10::Error, with the file in the message, if the image:
/// - cannot be read, or is neither PNG nor JPEG (the message identifies a GIF, WebP, BMP, or TIFF);
/// - has more pixels than `limits` allow, which is checked before memory is allocated for them;
/// - has more scans than `limits` allow;
/// - is damaged or truncated.
torch::Tensor read_image(const std::filesystem::path& path,
                         ImageReadMode mode = ImageReadMode::unchanged,
                         const ImageLimits& limits = {});

/// Like `read_image`, but decodes a PNG or JPEG image from bytes in memory. `input` is a uint8
/// tensor of shape `(n,)` on the CPU.
/// Python: `torchvision.io.decode_image(input, mode)`.
/// @throw c10::Error in the same cases as `read_image`, or if the type, shape, or device of `input`
/// is invalid.
torch::Tensor decode_image(const torch::Tensor& input,
                           ImageReadMode mode = ImageReadMode::unchanged,
                           const ImageLimits& limits = {});

/// Returns the height and width of a PNG or JPEG image, reading only the file's header.
/// Python: `PIL.Image.open(path).size`, which returns the width first.
/// @throw c10::Error in the same cases as `read_image`, except that damage after the header is not
/// detected.
std::array<int64_t, 2> read_image_size(const std::filesystem::path& path,
                                       const ImageLimits& limits = {});

/// Writes an image to a PNG file, which becomes visible only once it is complete. `input` is a
/// uint8 tensor of shape `(C, H, W)` on the CPU with 1 (gray), 2 (gray and alpha), 3 (RGB), or 4
/// (RGB and alpha) channels. `compression_level` ranges from 0 (fastest) to 9 (smallest).
/// Python: `torchvision.io.write_png(input, filename, compression_level)`, which accepts 1 or 3
/// channels.
/// @throw c10::Error if:
/// - the type, shape, or device of `input` is invalid, or the image has no pixels;
/// - the level is out of range;
/// - the file cannot be written.
void write_png(const torch::Tensor& input, const std::filesystem::path& path,
               int compression_level = 6);

}  // namespace sconce::vision
