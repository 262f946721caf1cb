"""Writes pictures/, with the pixels that Pillow reads from each: NAME.rgb next to NAME.png or NAME.jpg.

    python3 pictures.py                   # needs Pillow 13
    python3 pictures.py FOLDER COUNT      # COUNT random ones, half of each format, for a check by hand:
    SCONCE_PICTURES=FOLDER build/default/bin/test-data "[pictures]"
"""
import io
import random
import struct
import sys
import warnings
import zlib
from pathlib import Path

from PIL import Image

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by PNG's color type
DEPTHS = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows(samples, depth):
    """Returns the rows of one pass, each preceded by the filter byte 0."""
    out = b""
    for row in samples:
        values = [value for pixel in row for value in pixel]
        bits = "".join(format(value, f"0{depth}b") for value in values)
        bits += "0" * (-len(bits) % 8)
        out += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    return out


def png(width, height, color, depth, draw, interlaced=False, transparent=False):
    """Returns a PNG of random samples, including kinds that Pillow does not write."""
    colors = {(3, 8): 200, (0, 16): 512}.get((color, depth), 2**depth)  # Pillow clips 16-bit gray at 255
    samples = [[[draw.randrange(colors) for _ in range(CHANNELS[color])] for _ in range(width)]
               for _ in range(height)]
    if interlaced:
        passes = [[row[x::dx] for row in samples[y::dy]] for x, y, dx, dy in ADAM7]
        data = b"".join(rows(part, depth) for part in passes if part and part[0])
    else:
        data = rows(samples, depth)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))
    if color == 3:
        head += chunk(b"PLTE", draw.randbytes(3 * colors))
    if transparent:
        of_color = {0: 2, 2: 6, 3: 0}[color]
        values = samples[0][0]
        head += chunk(b"tRNS", struct.pack(f">{of_color // 2}H", *values) if of_color
                      else draw.randbytes(colors))
    return (b"\x89PNG\r\n\x1a\n" + head + chunk(b"gAMA", struct.pack(">I", 100000)) +
            chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def picture(width, height, mode, draw):
    """Returns an image that is smooth like a photograph, with some noise."""
    small = Image.frombytes("RGB", (4, 4), draw.randbytes(48)).resize((width, height), Image.BICUBIC)
    noise = Image.frombytes("RGB", (width, height), draw.randbytes(3 * width * height))
    return Image.blend(small, noise, 0.1).convert(mode)


def jpeg(width, height, mode, draw, **options):
    file = io.BytesIO()
    picture(width, height, mode, draw).save(file, "JPEG", **options)
    return file.getvalue()


def without_adobe(data):
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]:]


def as_ycck(data):
    """Returns the same file with Adobe's marker for YCCK, which changes its colors."""
    at = data.index(b"Adobe") + 11
    return data[:at] + b"\2" + data[at + 1:]


def pixels(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Image.open(io.BytesIO(data)).convert("RGB").tobytes()


def reference():
    draw = random.Random(18)
    for color, name in [(0, "grey"), (2, "rgb"), (3, "palette"), (4, "grey-alpha"), (6, "rgba")]:
        for depth in DEPTHS[color]:
            yield f"{name}-{depth}.png", png(19, 11, color, depth, draw)
        yield f"{name}-interlaced.png", png(19, 11, color, DEPTHS[color][0], draw, interlaced=True)
        if color in (0, 2, 3):
            yield f"{name}-transparent.png", png(19, 11, color, 8, draw, transparent=True)
    yield "grey-16-interlaced.png", png(19, 11, 0, 16, draw, interlaced=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # rotates by 90 degrees
    yield "grey.jpg", jpeg(19, 11, "L", draw)
    yield "ycc-444.jpg", jpeg(19, 11, "RGB", draw, subsampling="4:4:4")
    yield "ycc-422.jpg", jpeg(19, 11, "RGB", draw, subsampling="4:2:2")
    yield "ycc-420.jpg", jpeg(19, 11, "RGB", draw, subsampling="4:2:0")
    yield "rotated.jpg", jpeg(19, 11, "RGB", draw, exif=exif)
    yield "rgb.jpg", jpeg(19, 11, "RGB", draw, keep_rgb=True)
    yield "progressive.jpg", jpeg(19, 11, "RGB", draw, progressive=True)
    cmyk = jpeg(19, 11, "CMYK", draw)
    yield "cmyk.jpg", cmyk
    yield "cmyk-no-adobe.jpg", without_adobe(cmyk)
    yield "ycck.jpg", as_ycck(cmyk)


def random_ones(count):
    draw = random.Random(2000)
    kinds = [(color, depth) for color in CHANNELS for depth in DEPTHS[color]]
    for i in range(count):
        width, height = draw.randint(1, 200), draw.randint(1, 200)
        if i % 4 == 0:
            color, depth = draw.choice(kinds)
            yield f"{i}.png", png(width, height, color, depth, draw, draw.random() < 0.3,
                                  color in (0, 2, 3) and draw.random() < 0.3)
        elif i % 4 == 2:
            file = io.BytesIO()
            image = picture(width, height, "RGB", draw)
            mode = draw.choice(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
            if mode == "I;16":
                image = Image.frombytes(mode, image.size, draw.randbytes(2 * width * height))
            image.convert(mode).save(file, "PNG", optimize=draw.random() < 0.5)
            yield f"{i}.png", file.getvalue()
        else:
            mode = draw.choice(["L", "RGB", "RGB", "RGB", "CMYK"])
            data = jpeg(width, height, mode, draw, quality=draw.randint(10, 100),
                        progressive=draw.random() < 0.3, optimize=draw.random() < 0.5,
                        subsampling=draw.choice(["4:4:4", "4:2:2", "4:2:0"]))
            change = draw.choice([None, without_adobe, as_ycck]) if mode == "CMYK" else None
            yield f"{i}.jpg", change(data) if change else data


def main():
    folder = Path(__file__).parent / "pictures"
    pictures = reference()
    if len(sys.argv) == 3:
        folder, pictures = Path(sys.argv[1]), random_ones(int(sys.argv[2]))
    folder.mkdir(exist_ok=True)
    for name, data in pictures:
        (folder / name).write_bytes(data)
        (folder / name).with_suffix(".rgb").write_bytes(pixels(data))


main()
