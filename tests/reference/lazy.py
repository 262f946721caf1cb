"""Writes lazy.txt: the tensors of Python's lazy layers after their first forward, and the layers'
defaults.

One line per tensor: layer, bias or affine, type, name, shape, values as hexadecimal floats.
Run with a Python that has torch: python3 tests/reference/lazy.py

With the arguments `random OUT` it instead runs the layers in the file `cases` next to OUT. Each line is a layer and the
shape of its input. OUT becomes a list with the layer's state after the first forward, its output, the gradients of the
input and the parameters, and the next random number.
"""

import inspect
import pathlib
import sys

import torch
from torch import nn

LAYERS = {
    "LazyLinear": (lambda on: nn.LazyLinear(3, bias=on), (2, 4)),
    "LazyConv1d": (lambda on: nn.LazyConv1d(4, 3, groups=2, bias=on), (2, 4, 5)),
    "LazyConv2d": (lambda on: nn.LazyConv2d(2, (3, 2), padding=1, bias=on), (2, 3, 4, 5)),
    "LazyConv3d": (lambda on: nn.LazyConv3d(2, 2, stride=2, bias=on), (1, 2, 3, 4, 5)),
    "LazyBatchNorm1d": (lambda on: nn.LazyBatchNorm1d(affine=on), (4, 3)),
    "LazyBatchNorm2d": (lambda on: nn.LazyBatchNorm2d(momentum=None, affine=on), (2, 3, 4, 5)),
    "LazyBatchNorm3d": (lambda on: nn.LazyBatchNorm3d(affine=on), (2, 3, 2, 2, 3)),
    "LazyConvTranspose1d": (lambda on: nn.LazyConvTranspose1d(4, 3, groups=2, bias=on), (2, 4, 5)),
    "LazyConvTranspose2d": (
        lambda on: nn.LazyConvTranspose2d(2, (3, 2), stride=2, padding=1, output_padding=1, bias=on), (2, 3, 4, 5)),
    "LazyConvTranspose3d": (lambda on: nn.LazyConvTranspose3d(2, 2, stride=2, bias=on), (1, 2, 2, 3, 2)),
}


def first_forward(number, line):
    expression, shape = line.split("|")
    torch.manual_seed(number)
    layer = eval(expression)
    X = torch.randn(eval(shape), requires_grad=True)
    Y = layer(X)
    Y.square().sum().backward()
    gradients = [X.grad, *(p.grad for p in layer.parameters())]
    return {"state": dict(layer.state_dict()), "output": Y.detach(), "gradients": gradients, "next": torch.rand(1)}


if sys.argv[1:2] == ["random"]:
    out = pathlib.Path(sys.argv[2])
    cases = (out.parent / "cases").read_text().splitlines()
    torch.save([first_forward(*case) for case in enumerate(cases)], out)
    sys.exit()

lines = []
for name in LAYERS:
    for parameter in inspect.signature(getattr(nn, name).__init__).parameters.values():
        if parameter.default not in (inspect.Parameter.empty, None):
            lines.append(f"default {name} {parameter.name} {parameter.default}")
for name, (make, shape) in LAYERS.items():
    for on in (True, False):
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(7)
            layer = make(on).to(dtype)
            X = torch.linspace(-1, 1, torch.Size(shape).numel(), dtype=dtype).reshape(shape)
            Y = layer(X)
            state = {**layer.state_dict(), "output": Y.detach(), "next": torch.rand(1)}
            for key, value in state.items():
                sizes = ",".join(map(str, value.shape)) or "-"
                values = [float(v).hex() for v in value.double().flatten()]
                bits = str(dtype).removeprefix("torch.float")
                lines.append(" ".join(["tensor", name, str(int(on)), bits, key, sizes, *values]))
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
