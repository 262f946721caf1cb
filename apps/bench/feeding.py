"""An epoch of shuffled batches of 256 in-memory 28x28 images, and an epoch of JPEG files, both without training."""

import os
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset


def make_batches(variant, size, dtype):
    torch.manual_seed(0)
    data = torch.randint(256, (size, 28, 28), dtype=dtype)
    target = torch.arange(size)
    loader = DataLoader(TensorDataset(data, target), batch_size=256, shuffle=True)

    def by_index():
        for rows in torch.randperm(size).split(256):
            yield data.index_select(0, rows), target.index_select(0, rows)

    def feed():
        for _ in loader if variant == "default" else by_index():
            pass

    return [float(sum(y.sum().item() for _, y in by_index()))], feed


def batches(variant, size):
    return make_batches(variant, size, torch.uint8)


def floats(variant, size):
    return make_batches(variant, size, torch.float32)


def write_pictures(folder, size):
    """Writes JPEG files in two classes, with sides of 224 to 256 pixels, unless the files already exist."""
    from PIL import Image

    generator = torch.Generator().manual_seed(0)
    for i in range(size):
        file = folder / ("even" if i % 2 == 0 else "odd") / f"{i:05}.jpg"
        height, width, *color = torch.randint(224, 257, (5,), generator=generator).tolist()
        coarse = torch.rand(1, 3, 12, 12, generator=generator) * torch.tensor(color).view(1, 3, 1, 1)
        smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
        pixels = (smooth + 8 * torch.randn(3, height, width, generator=generator)).clamp(0, 255).byte()
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(file, quality=90)


def pictures(variant, size):
    """"default" decodes the files with Pillow, and "best" decodes them with torchvision and persistent workers."""
    from torchvision import io
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    folder = Path(os.environ["SCONCE_BENCH_FILES"])
    if variant == "files":
        write_pictures(folder, size)
        return [], None
    to_input = v2.Compose([v2.Resize([224, 224]), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
                           v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    is_best = variant == "best"
    reader = {"loader": lambda file: io.read_image(file, io.ImageReadMode.RGB)} if is_best else {}
    loader = DataLoader(ImageFolder(folder, to_input, **reader), batch_size=32, num_workers=2,
                        persistent_workers=is_best)

    def feed():
        for _ in loader:
            pass

    sums = [(x.mean(dtype=torch.float64).item() * len(y), y.sum().item()) for x, y in loader]
    return [sum(x for x, _ in sums) / size, float(sum(y for _, y in sums))], feed
