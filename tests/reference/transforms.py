"""Writes transforms.txt: torchvision's transforms of images, for tests/vision/transforms_test.cpp.

Run with a Python that has torchvision: python3 tests/reference/transforms.py

Each line: kind, type, the shape of the images (4), the options, ":", and the resulting values.
"""

import inspect
import pathlib

import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

RESIZES = [
    ((2, 1, 9, 7), (4, 3)),
    ((1, 3, 5, 4), (9, 11)),
    ((2, 3, 8, 8), (8, 5)),
    ((1, 1, 8, 8), (16, 6)),
    ((1, 3, 32, 31), (8, 9)),
    ((1, 2, 3, 17), (1, 1)),
    ((3, 1, 1, 1), (2, 3)),
    ((1, 1, 28, 28), (32, 32)),
    ((2, 3, 4, 4), (4, 4)),
]
CROPS = [  # shape, size, padding, seed
    ((4, 3, 6, 7), (3, 2), (0, 0, 0, 0), 0),
    ((5, 1, 4, 4), (4, 4), (2, 2, 2, 2), 1),
    ((3, 2, 3, 5), (5, 4), (0, 1, 2, 3), 2),
    ((2, 1, 3, 3), (3, 3), (0, 0, 0, 0), 3),
]
FLIPS = [(20, 0.5, 0), (20, 0.25, 7), (5, 0.0, 1), (5, 1.0, 1)]
CENTERS = [((2, 3, 7, 6), (4, 3)), ((1, 1, 4, 5), (6, 4)), ((2, 1, 3, 4), (6, 9)), ((1, 2, 5, 5), (5, 5))]
BOXES = [  # shape, size, options, seed
    ((4, 3, 9, 8), (5, 6), {}, 0),
    ((3, 1, 12, 4), (6, 6), {}, 1),
    ((3, 1, 4, 17), (3, 5), {"scale": (0.9, 1.0)}, 2),
    ((2, 3, 16, 3), (4, 4), {"scale": (0.9, 1.0), "ratio": (0.5, 0.8)}, 3),
    ((2, 1, 6, 6), (6, 6), {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)}, 4),
]
JITTERS = [  # shape, brightness, contrast, saturation, hue, seed
    ((3, 3, 5, 4), (0.4, 0.4, 0.4, 0.1), 0),
    ((4, 3, 4, 4), (0, 0, 0, 0.5), 1),
    ((2, 3, 4, 4), (1.5, 0, 0, 0), 2),
    ((2, 3, 4, 4), (0, 1, 0, 0), 3),
    ((2, 3, 4, 4), (0, 0, 2, 0), 4),
    ((3, 1, 4, 4), (0.4, 0.4, 0.4, 0.1), 5),
]
MEAN, STD = (0.5, 0.25, 0.125), (0.2, 0.3, 0.7)
lines = []


def images(dtype, shape):
    values = torch.arange(torch.Size(shape).numel()).mul(73).remainder(251).reshape(shape)
    return values.to(dtype) / 256 if dtype.is_floating_point else values.to(dtype)


def write(kind, dtype, shape, options, result):
    name = str(dtype).removeprefix("torch.")
    digits = 17 if dtype == torch.float64 else 9
    values = (f"{value:.{digits}g}" for value in result.double().flatten().tolist())
    lines.append(" ".join(map(str, [kind, name, *shape, *options, ":", *values])))


for dtype in (torch.uint8, torch.int16, torch.float16, torch.float32, torch.float64):
    cases = {torch.uint8: RESIZES, torch.float32: RESIZES[:7]}.get(dtype, RESIZES[:3])
    for shape, size in cases:
        write("resize", dtype, shape, size, v2.Resize(size)(images(dtype, shape)))
for dtype in (torch.float16, torch.float32, torch.float64):
    for channels in (1, 3):
        shape = (2, channels, 3, 2)
        normalize = v2.Normalize(MEAN[:channels], STD[:channels])
        write("normalize", dtype, shape, [], normalize(images(dtype, shape)))
for shape, size, padding, seed in CROPS:
    generator = torch.Generator().manual_seed(seed)
    padded = F.pad(images(torch.uint8, shape), padding)
    places = [padded.size(2) - size[0] + 1, padded.size(3) - size[1] + 1]
    tops, lefts = (torch.randint(n, shape[:1], generator=generator) for n in places)
    crops = [F.crop(*each, *size) for each in zip(padded, tops.tolist(), lefts.tolist())]
    write("crop", torch.uint8, shape, [*size, *padding, seed], torch.stack(crops))
for count, p, seed in FLIPS:
    shape = (count, 2, 1, 3)
    torch.manual_seed(seed)
    flip = v2.RandomHorizontalFlip(p)
    write("flip", torch.float32, shape, [p, seed],
          torch.stack([flip(image) for image in images(torch.float32, shape)]))
for dtype in (torch.uint8, torch.float32):
    for shape, size in CENTERS:
        write("center", dtype, shape, size, v2.CenterCrop(size)(images(dtype, shape)))
    for shape, size, options, seed in BOXES:
        torch.manual_seed(seed)
        crop = v2.RandomResizedCrop(size, **options)
        write("box", dtype, shape, [*size, *crop.scale, *crop.ratio, seed],
              torch.stack([crop(image) for image in images(dtype, shape)]))
    for shape, options, seed in JITTERS:
        torch.manual_seed(seed)
        jitter = v2.ColorJitter(*options)
        write("jitter", dtype, shape, [*options, seed], torch.stack([jitter(image) for image in images(dtype, shape)]))
shape = (2, 3, 7, 6)
compose = v2.Compose([v2.Resize((5, 4)), v2.Normalize(MEAN, STD)])
write("compose", torch.float32, shape, [], compose(images(torch.float32, shape)))
p = inspect.signature(v2.RandomHorizontalFlip).parameters["p"].default
lines.append(f"default p {p}")
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
