#include "sconce/vision/image.hpp"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <sys/stat.h>

#include <cstdlib>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/live_memory.hpp"
#include "support/png.hpp"
#include "support/temp_dir.hpp"
#include "vision/image_decoder.hpp"
#include "vision/jpeg.hpp"
#include "vision/png.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;
using sconce::vision::decode_image;
using sconce::vision::has_libjpeg;
using sconce::vision::has_libpng;
using sconce::vision::ImageReadMode;
using sconce::vision::read_image;
using sconce::vision::read_image_size;
using sconce::vision::write_png;

namespace {

namespace fs = std::filesystem;

const fs::path pictures = SCONCE_TESTS_DIR "/reference/pictures";

// Returns the images in a folder, excluding formats that this build of sconce does not support.
std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string suffix = entry.path().extension();
    if ((suffix == ".png" && has_libpng()) || (suffix == ".jpg" && has_libjpeg())) {
      found.push_back(entry.path());
    }
  }
  return found;
}

torch::Tensor bytes_of(const fs::path& file) {
  std::string bytes = contents(file);
  return torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, torch::kByte).clone();
}

// Checks that an image has the same pixels that Pillow read. JPEG pixels may differ by 2, as they
// do between libjpeg-turbo versions.
void check_pixels(fs::path file) {
  INFO(file.string());
  const auto picture = read_image(file, ImageReadMode::rgb);
  const auto [height, width] = read_image_size(file);
  REQUIRE(picture.sizes() == torch::IntArrayRef{3, height, width});
  REQUIRE(picture.dtype() == torch::kByte);
  CHECK(decode_image(bytes_of(file), ImageReadMode::rgb).equal(picture));
  const bool is_png = file.extension() == ".png";
  std::string bytes = contents(file.replace_extension(".rgb"));
  REQUIRE(static_cast<int64_t>(bytes.size()) == picture.numel());
  const auto expected = torch::from_blob(bytes.data(), {height, width, 3}, torch::kByte);
  const auto apart = (picture.permute({1, 2, 0}).to(torch::kInt) - expected.to(torch::kInt)).abs();
  CHECK(apart.max().item<int>() <= (is_png ? 0 : 2));
}

// Returns the error message for a rejected file, or an empty string if the file can be read.
std::string picture_refusal(const fs::path& file) {
  try {
    read_image(file, ImageReadMode::rgb);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

// Reads the pixels with a limit that prevents a damaged header from requesting a lot of memory.
// Returns the error message, or an empty string if the file can be read.
std::string picture_refusal_of_small(const fs::path& path, ImageReadMode mode) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  try {
    sconce::vision::read_pixels(file.get(), mode, {.max_pixels = 1 << 16});
  } catch (const sconce::vision::ImageError& error) {
    return error.what();
  }
  return "";
}

// Returns the first bytes of a grayscale PNG file for an image of the given size.
std::string first_bytes(int64_t width, int64_t height) {
  return sconce::test::png_header(1, height, width) + std::string(4, '\0') + "IDAT";
}

void check_no_picture(const fs::path& file, const std::string& why) {
  CHECK_THAT(
      picture_refusal(file),
      StartsWith("sconce::vision::read_image: " + file.string() + ": ") && ContainsSubstring(why));
}

// Checks that both read_image and read_image_size reject a file with an invalid header.
void check_no_header(const fs::path& file, const std::string& why) {
  check_no_picture(file, why);
  CHECK_THAT(error_of([&] { read_image_size(file); }),
             StartsWith("sconce::vision::read_image_size: " + file.string() + ": "));
}

torch::Tensor sample(int64_t channels) {
  return torch::arange(channels * 5 * 7)
      .mul(37)
      .remainder(256)
      .view({channels, 5, 7})
      .to(torch::kByte);
}

}  // namespace

TEST_CASE("read_image returns the same pixels as Pillow") {
  const auto files = pictures_in(pictures);
  for (const auto& file : files) check_pixels(file);
  CHECK(files.size() == (has_libpng() ? 24U : 0U) + (has_libjpeg() ? 10U : 0U));
}

TEST_CASE("read_image returns the same pixels as Pillow for the images in SCONCE_PICTURES",
          "[.][pictures]") {
  const char* folder = std::getenv("SCONCE_PICTURES");
  if (folder == nullptr) SKIP("takes a folder that pictures.py wrote: SCONCE_PICTURES=FOLDER");
  for (const auto& file : pictures_in(folder)) check_pixels(file);
}

TEST_CASE("read_image returns the channels specified by its mode") {
  for (const auto& file : pictures_in(pictures)) {
    INFO(file.string());
    const auto rgb = read_image(file, ImageReadMode::rgb);
    const auto gray = read_image(file, ImageReadMode::gray);
    const auto gray_alpha = read_image(file, ImageReadMode::gray_alpha);
    const auto rgb_alpha = read_image(file, ImageReadMode::rgb_alpha);
    const auto unchanged = read_image(file);
    const std::string name = file.stem();
    const bool is_gray = name.starts_with("grey");
    const bool has_alpha = name.starts_with("rgba") || name.starts_with("grey-alpha") ||
                           name.ends_with("-transparent");
    REQUIRE(gray_alpha.size(0) == 2);
    REQUIRE(rgb_alpha.size(0) == 4);
    CHECK(rgb_alpha.slice(0, 0, 3).equal(rgb));
    CHECK(gray_alpha.slice(0, 0, 1).equal(gray));
    CHECK(gray_alpha[1].equal(rgb_alpha[3]));
    CHECK(unchanged.size(0) == (is_gray ? 1 : 3) + (has_alpha ? 1 : 0));
    CHECK(
        unchanged.equal(is_gray ? (has_alpha ? gray_alpha : gray) : (has_alpha ? rgb_alpha : rgb)));
    CHECK((has_alpha || rgb_alpha[3].eq(255).all().item<bool>()));
    if (is_gray) CHECK(gray.expand({3, -1, -1}).equal(rgb));
  }
}

TEST_CASE("read_image converts colors to grayscale and preserves transparency as Pillow does") {
  if (!has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path file = folder.path() / "a.png";
  const auto rgb = torch::tensor({255, 0, 10, 0, 255, 20, 255, 255, 30}, torch::kByte);
  write_png(rgb.view({3, 1, 3}), file);
  // Image.convert('L') returns these values for (255, 0, 255), (0, 255, 255), and (10, 20, 30).
  CHECK(read_image(file, ImageReadMode::gray)
            .equal(torch::tensor({105, 179, 18}, torch::kByte).view({1, 1, 3})));
  // The expected numbers are the sums of the alpha channel that Image.convert('RGBA') returns.
  const auto alpha = [](const char* name) {
    return read_image(pictures / name, ImageReadMode::rgb_alpha)[3].sum().item<int64_t>();
  };
  CHECK(alpha("palette-transparent.png") == 28868);
  CHECK(alpha("rgb-transparent.png") == 53040);
  CHECK(alpha("grey-transparent.png") == 53040);
  CHECK(alpha("rgba-16.png") == 27164);
  CHECK(alpha("grey-alpha-16.png") == 26468);
}

TEST_CASE("read_image reads grayscale and RGB images written by write_png, with or without alpha") {
  if (!has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path file = folder.path() / "a.png";
  for (int64_t channels = 1; channels <= 4; ++channels) {
    for (const int level : {0, 6, 9}) {
      const auto picture = sample(channels);
      write_png(picture, file, level);
      CHECK(read_image(file).equal(picture));
      write_png(picture.transpose(1, 2), file, level);
      CHECK(read_image(file).equal(picture.transpose(1, 2)));
    }
  }
  write_png(torch::zeros({1, 600, 600}, torch::kByte), file, 9);
  const auto small = fs::file_size(file);
  write_png(torch::zeros({1, 600, 600}, torch::kByte), file, 0);
  CHECK(fs::file_size(file) > 100 * small);
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"a.png"});
}

TEST_CASE(
    "write_png rejects invalid images with an error that includes the file name, and leaves the "
    "file unchanged") {
  const TempDir folder;
  const fs::path file = folder.write("a.png", "before");
  const auto refused = [&](const torch::Tensor& picture, const std::string& why, int level = 6) {
    CHECK_THAT(
        error_of([&] { write_png(picture, file, level); }),
        StartsWith("sconce::vision::write_png: " + file.string() + ": ") && ContainsSubstring(why));
  };
  refused(torch::Tensor(), "expected a uint8 image");
  refused(sample(3).to(torch::kFloat), "CPUFloatType of shape [3, 5, 7]");
  refused(sample(3).unsqueeze(0), "shape [1, 3, 5, 7]");
  refused(sample(5), "with 1 to 4 channels");
  refused(torch::empty({3, 0, 7}, torch::kByte), "at least one pixel");
  refused(sample(3), "compression_level to be from 0 to 9, got 10", 10);
  refused(sample(3), "compression_level to be from 0 to 9, got -1", -1);
  CHECK(contents(file) == "before");
  if (!has_libpng()) return;
  CHECK_THAT(error_of([&] { write_png(sample(1), folder.path() / "no" / "a.png"); }),
             StartsWith("sconce::vision::write_png: " + (folder.path() / "no/a.png").string()));
}

TEST_CASE("decode_image accepts only the bytes of an image file") {
  const auto refused = [](const torch::Tensor& input, const std::string& why) {
    CHECK_THAT(error_of([&] { decode_image(input); }),
               StartsWith("sconce::vision::decode_image: ") && ContainsSubstring(why));
  };
  refused(torch::Tensor(), "uint8 (n,)");
  refused(torch::zeros({3}), "CPUFloatType of shape [3]");
  refused(torch::zeros({3, 2}, torch::kByte), "shape [3, 2]");
  refused(torch::zeros({0}, torch::kByte), "got an empty buffer");
  refused(torch::zeros({9}, torch::kByte), "got something else");
  if (!has_libpng()) return;
  const auto bytes = bytes_of(pictures / "rgb-8.png");
  const auto picture = decode_image(bytes);
  CHECK(decode_image(torch::stack({bytes, bytes}, 1).select(1, 0)).equal(picture));
  refused(bytes.slice(0, 0, bytes.size(0) - 30), "damaged PNG");
}

TEST_CASE(
    "an image file truncated at any byte is rejected with an error that includes the file name") {
  const TempDir folder;
  for (const auto& whole : pictures_in(pictures)) {
    const fs::path file = folder.path() / whole.filename();
    fs::copy_file(whole, file);
    for (auto length = fs::file_size(file); length-- > 0;) {
      fs::resize_file(file, length);
      const std::string why = picture_refusal(file);
      if (why.starts_with("sconce::vision::read_image: " + file.string() + ": ")) continue;
      FAIL_CHECK(file.filename().string() << " of " << length << " bytes: " << why);
      break;
    }
  }
}

TEST_CASE("an image file with a flipped bit is either read or rejected") {
  const TempDir folder;
  for (const auto& whole : pictures_in(pictures)) {
    const std::string bytes = contents(whole);
    for (size_t i = 0; i < bytes.size(); i += 3) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
      const auto mode = static_cast<ImageReadMode>(i / 3 % 5);
      CHECK_NOTHROW(picture_refusal_of_small(folder.write("changed", changed), mode));
    }
  }
}

TEST_CASE("a PNG with changed pixels is rejected because its checksum does not match") {
  if (!has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  std::string bytes = contents(pictures / "rgb-8.png");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const auto file = folder.write("changed.png", bytes);
  CHECK_THAT(picture_refusal(file),
             StartsWith("sconce::vision::read_image: " + file.string() + ": damaged PNG: "));
  CHECK(read_image_size(file) == std::array<int64_t, 2>{11, 19});
}

TEST_CASE("a file that is not an image is rejected based on its contents, not its name") {
  const TempDir folder;
  check_no_header(folder.write("empty.png", ""), "a PNG or JPEG image, got an empty file");
  check_no_header(folder.write("a.jpg", "GIF89a, or so"), "a PNG or JPEG image, got a GIF");
  check_no_header(folder.write("b.jpg", "RIFF1234WEBPVP8 "), "got a WebP");
  check_no_header(folder.write("c.png", "BM, or so"), "got a BMP");
  check_no_header(folder.write("d.png", std::string("II*\0\0\0\0\0", 8)), "got a TIFF");
  check_no_header(folder.write("e.png", "RIFF1234WAVEfmt "), "got something else");
  check_no_header(folder.path() / "nowhere.png", "cannot open it: No such file");
  check_no_header(folder.path(), "expected a regular file, found a folder");
  fs::create_symlink("circle.png", folder.path() / "circle.png");
  check_no_header(folder.path() / "circle.png", "symbolic links");
  check_no_header("/dev/null", "expected a regular file, found a device");
  REQUIRE(::mkfifo((folder.path() / "fifo.png").c_str(), 0600) == 0);
  check_no_header(folder.path() / "fifo.png", "expected a regular file, found a FIFO");
  if (!has_libpng()) return;
  fs::copy_file(pictures / "rgb-8.png", folder.path() / "f.jpg");
  CHECK(picture_refusal(folder.path() / "f.jpg").empty());
  fs::copy_file(pictures / "rgb-8.png", folder.path() / "\xff\xfe.png");
  CHECK(picture_refusal(folder.path() / "\xff\xfe.png").empty());
}

TEST_CASE("read_image reads the default image of an animated PNG") {
  if (!has_libpng()) SKIP("built without libpng");
  using sconce::test::big_endian;
  using sconce::test::png_chunk;
  const TempDir folder;
  const auto picture = sample(3);
  const std::string plain = sconce::test::png_of(picture);
  const auto data = plain.find("IDAT") - 4;
  const auto end = plain.find("IEND") - 4;
  const std::string animated =
      plain.substr(0, data) + png_chunk("acTL", big_endian(2) + big_endian(0)) +
      png_chunk("fcTL", big_endian(0) + big_endian(7) + big_endian(5) + std::string(14, '\1')) +
      plain.substr(data, end - data) +
      png_chunk("fcTL", big_endian(1) + big_endian(7) + big_endian(5) + std::string(14, '\1')) +
      png_chunk("fdAT", big_endian(2) + "no pixels") + plain.substr(end);
  CHECK(read_image(folder.write("a.png", animated)).equal(picture));
}

TEST_CASE("an image that is too large is rejected based on its header") {
  const TempDir folder;
  if (has_libpng()) {
    check_no_header(
        folder.write("a.png", first_bytes(60000, 60000)),
        "expected at most 89478485 pixels (ImageLimits::max_pixels), got 60000 x 60000");
    check_no_header(folder.write("b.png", first_bytes(0x7fffffff, 0x7fffffff)), "expected at most");
    check_no_header(folder.write("c.png", first_bytes(89478486, 1)), "expected at most");
    CHECK(read_image_size(folder.write("d.png", first_bytes(89478485, 1)))[0] == 1);
    check_no_header(folder.write("e.png", first_bytes(0, 1)), "damaged PNG");
  }
  if (has_libjpeg()) {
    std::string bytes = contents(pictures / "grey.jpg");
    const auto size = bytes.find(std::string("\0\x0b\0\x13", 4));
    REQUIRE(size != std::string::npos);
    bytes.replace(size, 4, "\xea\x60\xea\x60");
    check_no_header(folder.write("a.jpg", bytes),
                    "pixels (ImageLimits::max_pixels), got 60000 x 60000");
  }
}

TEST_CASE(
    "an image that exceeds the caller's limits is rejected, and the error reports the limit") {
  const TempDir folder;
  if (has_libpng()) {
    const auto file = folder.path() / "a.png";
    write_png(sample(3), file);
    CHECK(read_image(file, ImageReadMode::rgb, {.max_pixels = 35}).equal(sample(3)));
    const std::string expected = "expected at most 34 pixels (ImageLimits::max_pixels), got 7 x 5";
    for (const auto& error :
         {error_of([&] { read_image(file, ImageReadMode::rgb, {.max_pixels = 34}); }),
          error_of([&] { decode_image(bytes_of(file), ImageReadMode::rgb, {.max_pixels = 34}); }),
          error_of([&] { read_image_size(file, {.max_pixels = 34}); })}) {
      CHECK_THAT(error, ContainsSubstring(expected));
    }
  }
  if (has_libjpeg()) {  // each scan takes as long as reading all pixels, even if it is short
    std::string bytes = contents(pictures / "progressive.jpg");
    const size_t first = bytes.find("\xff\xda");
    const std::string scan = bytes.substr(first, bytes.find("\xff\xc4", first) - first);
    for (int i = 0; i < 85; ++i) bytes.insert(first, scan);
    const auto file = folder.write("a.jpg", bytes);
    check_no_picture(file, "expected at most 64 scans (ImageLimits::max_scans), got more");
    CHECK(read_image(file, ImageReadMode::rgb, {.max_scans = 100}).defined());
  }
}

TEST_CASE("reading an image uses at most 9 bytes of tensor memory per pixel in every mode") {
  if (!has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  constexpr int64_t pixels = 500 * 400;
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const auto file = folder.path() / (std::to_string(channels) + ".png");
    write_png(torch::zeros({channels, 500, 400}, torch::kByte), file);
    for (int mode = 0; mode < 5; ++mode) {
      const auto live = std::make_shared<sconce::test::LiveMemory>();
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
      read_image(file, static_cast<ImageReadMode>(mode));
      CHECK(live->peak >= pixels);
      CHECK(live->peak <= 9 * pixels);
    }
  }
}

TEST_CASE("without libpng or libjpeg, a NotImplementedError reports which package to install") {
  const TempDir folder;
  const auto error = [](const auto& use) -> std::string {
    try {
      use();
    } catch (const c10::NotImplementedError& refused) {
      return refused.what_without_backtrace();
    }
    return "";
  };
  const auto read = [](const char* name) { return [=] { read_image(pictures / name); }; };
  const auto write = [&] { write_png(sample(3), folder.path() / "a.png"); };
  const auto check_named = [](const std::string& why, const char* package) {
    CHECK_THAT(why, StartsWith("sconce::vision::") && ContainsSubstring(package));
  };
  if (!has_libpng()) check_named(error(read("rgb-8.png")), "apt install libpng-dev");
  if (!has_libpng()) check_named(error(write), "apt install libpng-dev");
  if (!has_libjpeg()) check_named(error(read("grey.jpg")), "apt install libjpeg-dev");
  if (has_libpng() && has_libjpeg()) SKIP("built with both");
}
