"""Writes summary.txt: 50 random Sequentials, with the shapes and parameter counts that torchinfo reports for them.

Needs torch and torchinfo (1.8.0 wrote the file): python tests/reference/summary.py > tests/reference/summary.txt
For each: "model MODULES float|long frozen|free LIST", a line per module "CLASS LIST_OF_ARGUMENTS LIST_OF_SIZES
PARAMETERS", and "total PARAMETERS TRAINABLE PARAMETER_BYTES INPUT_BYTES OUTPUT_BYTES". A list begins with its length.
"""

import random

import torch
import torchinfo
from torch import nn


def flat(draw, shape, modules):
    size = shape[-1]
    for _ in range(draw.randint(1, 5)):
        kind = draw.choice(["Linear", "LinearNoBias", "ReLU", "Tanh", "Dropout", "BatchNorm1d", "LayerNorm"])
        if kind.startswith("Linear"):
            out = draw.randint(1, 40)
            modules.append((kind, [size, out], nn.Linear(size, out, bias=kind == "Linear")))
            size = out
        elif kind == "BatchNorm1d":
            modules.append((kind, [size], nn.BatchNorm1d(size)))
        elif kind == "LayerNorm":
            modules.append((kind, [size], nn.LayerNorm(size)))
        else:
            modules.append((kind, [], getattr(nn, kind)()))


def pictures(draw, shape, modules):
    channels, side = shape[1], shape[2]
    for _ in range(draw.randint(1, 5)):
        kind = draw.choice(["Conv2d", "BatchNorm2d", "MaxPool2d", "AvgPool2d", "ReLU", "Dropout", "Sigmoid"])
        if kind == "Conv2d":
            out, kernel, stride, padding = draw.randint(1, 8), draw.choice([1, 3]), draw.randint(1, 2), draw.randint(0, 1)
            if side + 2 * padding < kernel:
                continue
            arguments = [channels, out, kernel, stride, padding]
            modules.append((kind, arguments, nn.Conv2d(*arguments)))
            channels, side = out, (side + 2 * padding - kernel) // stride + 1
        elif kind == "BatchNorm2d":
            modules.append((kind, [channels], nn.BatchNorm2d(channels)))
        elif kind.endswith("Pool2d"):
            if side < 2:
                continue
            modules.append((kind, [2], getattr(nn, kind)(2)))
            side //= 2
        else:
            modules.append((kind, [], getattr(nn, kind)()))
    modules.append(("Flatten", [], nn.Flatten()))
    flat(draw, [shape[0], channels * side * side], modules)


def words(draw, shape, modules):
    number, size = draw.randint(2, 100), draw.randint(1, 16)
    modules.append(("Embedding", [number, size], nn.Embedding(number, size)))
    modules.append(("Flatten", [], nn.Flatten()))
    flat(draw, [shape[0], size * shape[1]], modules)


def write(draw):
    make = draw.choice([flat, pictures, pictures, words])
    batch = draw.randint(1, 8)
    if make is pictures:
        side = draw.randint(4, 28)
        shape = [batch, draw.randint(1, 4), side, side]
    else:
        shape = [batch, draw.randint(1, 40)]
    dtype = torch.long if make is words else torch.float
    modules = []
    make(draw, shape, modules)
    if draw.random() < 0.3:
        modules[0][2].requires_grad_(False)
    frozen = not any(p.requires_grad for p in modules[0][2].parameters())
    model = nn.Sequential(*(module for _, _, module in modules))
    data = torch.zeros(shape, dtype=dtype)
    found = torchinfo.summary(model, input_data=data, verbose=0)
    # torchinfo also counts the Python object that holds the inputs.
    assert 0 <= found.total_input - data.nbytes < 100
    rows = found.summary_list[1:]
    assert len(rows) == len(modules)
    print("model", len(modules), "long" if make is words else "float", "frozen" if frozen else "free", len(shape), *shape)
    for (kind, arguments, _), row in zip(modules, rows):
        print(kind, len(arguments), *arguments, len(row.output_size), *row.output_size, max(row.num_params, 0))
    print("total", found.total_params, found.trainable_params, found.total_param_bytes, data.nbytes,
          found.total_output_bytes)


def main():
    draw = random.Random(19)
    for _ in range(50):
        write(draw)


if __name__ == "__main__":
    main()
