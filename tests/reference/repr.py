"""Writes the results of Python's repr, for tests/repr_test.cpp, which runs this script with its own
LibTorch.

Run: python3 tests/reference/repr.py tensors|texts FILE

tensors: generated tensors. For each, a line "dtype how rank sizes bytes length", the elements' bytes
and the text. texts: for each, a line "== " with the Python expression, then its text.
"""

import ctypes
import random
import struct
import sys
import warnings

import torch
from torch import nn

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SHAPES = [(), (1,), (2,), (3,), (7,), (10,), (26,), (27,), (40,), (83,), (0,), (1, 1), (2, 3),
          (3, 2), (5, 5), (2, 12), (3, 9), (7, 7), (0, 3), (3, 0), (1, 30), (2, 2, 2), (3, 1, 4),
          (1, 2, 9), (4, 0, 2), (2, 7, 3), (2, 2, 2, 2), (1, 3, 2, 4), (2, 1, 1, 7), (2, 0, 1, 3),
          (1, 2, 1, 2, 2)]
LARGE = [(999,), (1000,), (1001,), (2000,), (6, 200), (7, 143), (7, 144), (200, 6), (500, 3),
         (11, 100), (10, 10, 10), (10, 10, 11), (2, 3, 200), (3, 400, 1), (1, 1, 1500),
         (7, 3, 7, 8), (2, 8, 8, 8), (2, 2, 2, 2, 2, 40)]


def random_bytes(count, dtype):
    bits = bytearray(random.randbytes(count * dtype.itemsize))
    return torch.frombuffer(bits, dtype=dtype).clone() if count else torch.empty(0, dtype=dtype)


def float_values(count, dtype):
    kind = random.randrange(12)
    x = torch.randn(count, dtype=torch.float64)
    if kind == 0:
        return random_bytes(count, dtype)
    if kind == 1:
        x = torch.zeros(count, dtype=torch.float64) * random.choice([1, -1])
    elif kind == 2:
        x = (x * 10 ** random.randrange(5)).round()
    elif kind == 3:
        x = x * 10.0 ** random.uniform(-9, 9)
    elif kind == 4:
        x = x * 10.0 ** (6 * torch.rand(count, dtype=torch.float64))
    elif kind == 5:
        kinds = [0.1, 1e8, 1.1e8, 1e-4, 9e-5, 1e5, -3.0, 1000.0]
        x = torch.full((count,), random.choice(kinds), dtype=torch.float64)
        x[: count // 2] = random.choice([1.0, 0.0, 100.0])
    elif kind == 6:
        x = torch.arange(count, dtype=torch.float64) * random.choice([1, 0.5, 0.1, 0.00005])
    elif kind == 7:
        x = torch.rand(count, dtype=torch.float64)
    elif kind == 8:
        x = (x * 16).round() / 32 + random.choice([0, 0.00005, 0.00015])
    x = x.to(dtype)
    if random.random() < 0.3:
        for special in [float("nan"), float("inf"), -float("inf"), -0.0, 0.0]:
            x[torch.rand(count) < 0.2 * random.random()] = special
    return x


def values(count, name):
    dtype = getattr(torch, name)
    if name in FLOATS:
        return float_values(count, dtype)
    if name == "bool":
        return torch.rand(count) < random.random()
    if random.random() < 0.4:
        return random_bytes(count, dtype)
    low = 0 if name.startswith("u") else -100
    return torch.randint(low, random.choice([1, 10, 120]), (count,)).to(dtype)


def changed(x, how):
    """Changes a tensor like repr_test.cpp."""
    if how == "transposed":
        return x.transpose(0, -1)
    if how == "strided":
        return x[::2]
    if how == "expanded":
        return x.unsqueeze(0).expand(3, *x.shape)
    if how == "meta":
        return x.to("meta")
    if how == "requires_grad":
        return x.requires_grad_()
    if how == "mul":
        return x.requires_grad_() * torch.ones(())
    if how == "view":
        return x.requires_grad_().view(-1)
    return x


def write_tensors(file):
    for i in range(2400):
        name = random.choice(FLOATS * 3 + INTS + ["bool"] * 2)
        shape = random.choice(LARGE if i % 10 == 0 else SHAPES)
        x = values(torch.Size(shape).numel(), name).reshape(shape)
        hows = ["plain"] * 6 + ["meta", "expanded"]
        hows += ["transposed", "strided"] if shape else []
        hows += ["requires_grad", "mul", "view"] if name in FLOATS else []
        how = random.choice(hows)
        data = ctypes.string_at(x.data_ptr(), x.nbytes) if x.numel() else b""
        text = repr(changed(x, how)).encode()
        sizes = "".join(f"{size} " for size in shape)
        file.write(f"{name} {how} {len(shape)} {sizes}{len(data)} {len(text)}\n".encode())
        file.write(data + text)


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.inner = SimpleNN()


class Wide(nn.Linear):
    pass


class Noted(nn.Module):
    def __init__(self, children):
        super().__init__()
        if children:
            self.fc = nn.Linear(1, 2)

    def extra_repr(self):
        return "depth=2,\nwidth=3" if hasattr(self, "fc") else "depth=2"


X = torch.ones(2, 3, requires_grad=True)


def in_place():
    x = torch.zeros(4, 3)
    x[:2] = X
    return x


def left_behind():
    base = torch.ones(2, requires_grad=True).clone()
    with torch.no_grad():
        view = base.view(-1)
        view.mul_(2)
    return view


TEXTS = """
torch.device('cpu')
torch.device('cuda')
torch.device('cuda:1')
torch.device('meta')
torch.float32
torch.float64
torch.float16
torch.bfloat16
torch.int8
torch.int16
torch.int32
torch.int64
torch.uint8
torch.uint16
torch.bool
torch.complex64
torch.Size([])
torch.Size([0])
torch.Size([2, 3, 4])
True
False
X.sum()
X.view(-1)
X.t()
X[0]
X[:, 1:]
X.exp()
X.clone()
X.double()
X @ X.t()
X.unsqueeze(1).expand(2, 2, 3)
torch.cat([X, X])
torch.relu(X)
nn.functional.linear(X, X)
nn.functional.linear(X, X, torch.ones(2))
nn.functional.cross_entropy(X, torch.tensor([0, 1]))
nn.functional.mse_loss(X, torch.zeros(2, 3))
nn.functional.conv1d(X, torch.ones(1, 2, 1))
in_place()
left_behind()
nn.Linear(3, 1)
nn.Linear(3, 1, bias=False)
nn.Bilinear(2, 3, 4)
nn.Conv1d(2, 4, 3)
nn.Conv2d(1, 6, 5, padding=2)
nn.Conv2d(4, 8, (3, 5), (2, 1), padding=(1, 2), dilation=(1, 2), groups=4, bias=False)
nn.Conv2d(4, 8, 3, padding='same', padding_mode='reflect')
nn.Conv2d(4, 8, 3, padding='valid')
nn.Conv3d(1, 2, 3, stride=2)
nn.ConvTranspose1d(2, 2, 2)
nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1)
nn.ConvTranspose3d(2, 2, 2)
nn.BatchNorm1d(10)
nn.BatchNorm2d(6, eps=1e-3, momentum=None, affine=False, track_running_stats=False)
nn.BatchNorm3d(4, momentum=0.01)
nn.InstanceNorm1d(3)
nn.InstanceNorm2d(3, affine=True)
nn.InstanceNorm3d(3)
nn.LayerNorm(10)
nn.LayerNorm((3, 4), eps=1e-6, elementwise_affine=False)
nn.GroupNorm(2, 4)
nn.GroupNorm(2, 4, affine=False)
nn.LocalResponseNorm(2)
nn.CrossMapLRN2d(2)
nn.Dropout()
nn.Dropout(0.2, inplace=True)
nn.Dropout2d()
nn.Dropout3d()
nn.AlphaDropout()
nn.FeatureAlphaDropout()
nn.ReLU()
nn.ReLU(inplace=True)
nn.ReLU6()
nn.LeakyReLU()
nn.LeakyReLU(0.2, inplace=True)
nn.ELU()
nn.CELU(0.5, True)
nn.SELU()
nn.GELU()
nn.GELU(approximate='tanh')
nn.GLU()
nn.SiLU()
nn.Mish()
nn.Sigmoid()
nn.LogSigmoid()
nn.Tanh()
nn.Tanhshrink()
nn.Softsign()
nn.Softplus()
nn.Softmax(dim=1)
nn.Softmin(dim=1)
nn.LogSoftmax(dim=-1)
nn.Softmax2d()
nn.Hardshrink()
nn.Softshrink()
nn.Hardtanh()
nn.RReLU()
nn.PReLU(3)
nn.Threshold(0.1, 20.0)
nn.Flatten()
nn.Flatten(0, 1)
nn.Unflatten(1, (2, 5))
nn.Identity()
nn.MaxPool1d(2)
nn.MaxPool2d(2)
nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)
nn.MaxPool2d((3, 2), stride=(2, 1))
nn.MaxPool3d(2)
nn.AvgPool1d(2)
nn.AvgPool2d(2)
nn.AvgPool2d((3, 2), stride=2)
nn.AvgPool3d(2)
nn.AdaptiveAvgPool1d(5)
nn.AdaptiveAvgPool2d(1)
nn.AdaptiveAvgPool2d((None, 7))
nn.AdaptiveAvgPool3d(2)
nn.AdaptiveMaxPool1d(5)
nn.AdaptiveMaxPool2d((5, 7))
nn.AdaptiveMaxPool3d(2)
nn.MaxUnpool1d(2)
nn.MaxUnpool2d(2)
nn.MaxUnpool3d(2)
nn.LPPool1d(2.0, 3)
nn.LPPool2d(1.2, 3, stride=2)
nn.LPPool3d(2.0, 3)
nn.ReflectionPad1d(2)
nn.ReflectionPad2d((1, 2, 3, 4))
nn.ReflectionPad3d(1)
nn.ReplicationPad1d(2)
nn.ReplicationPad2d(2)
nn.ReplicationPad3d(2)
nn.ZeroPad1d(2)
nn.ZeroPad2d(2)
nn.ZeroPad3d(2)
nn.ConstantPad1d(2, 3.5)
nn.ConstantPad2d(2, 3.5)
nn.ConstantPad3d(2, 3.5)
nn.Fold((4, 5), 2)
nn.Unfold(3, padding=1)
nn.PixelShuffle(2)
nn.PixelUnshuffle(2)
nn.Upsample(scale_factor=2, mode='bilinear')
nn.Upsample(size=(4, 5))
nn.Embedding(10, 3)
nn.Embedding(10, 3, padding_idx=1, max_norm=1.0, sparse=True)
nn.EmbeddingBag(10, 3, mode='sum')
nn.RNN(4, 8)
nn.RNN(4, 8, nonlinearity='relu')
nn.LSTM(4, 8, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)
nn.LSTM(4, 8, bias=False, proj_size=3)
nn.GRU(4, 8)
nn.RNNCell(4, 8, nonlinearity='relu')
nn.LSTMCell(4, 8, bias=False)
nn.GRUCell(4, 8)
nn.CrossEntropyLoss()
nn.MSELoss()
nn.L1Loss()
nn.NLLLoss()
nn.BCEWithLogitsLoss()
nn.CosineSimilarity()
nn.LazyLinear(1, bias=False)
nn.LazyConv1d(4, 3)
nn.LazyConv2d(64, 3, padding=1)
nn.LazyConv3d(4, 3, stride=2, bias=False)
nn.LazyBatchNorm1d()
nn.LazyBatchNorm2d(affine=False)
nn.Sequential(nn.LazyLinear(1))
nn.Sequential()
nn.Sequential(nn.Linear(3, 1))
nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU(), nn.Dropout(0.5), nn.Linear(2, 2))
nn.ModuleList()
nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
nn.ModuleList([Residual(), Residual()])
nn.ModuleDict({'left': nn.Linear(2, 2), 'right': nn.ReLU()})
nn.MultiheadAttention(4, 2)
nn.TransformerEncoderLayer(4, 2, 8)
nn.LayerNorm((3, 4), eps=1e-6, bias=False)
nn.MultiheadAttention(4, 2, bias=False)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.5), 2, nn.LayerNorm(4))
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)
SimpleNN()
Residual()
Wide(2, 3)
Noted(children=False)
Noted(children=True)
nn.Sequential(Residual(), SimpleNN(), nn.Sigmoid())
"""


def write_texts(file):
    for source in TEXTS.strip().splitlines():
        file.write(f"== {source}\n{eval(source)!r}\n".encode())
    numbers = [0.0, -0.0, 1.0, -2.0, 0.1, 0.5, 1e-5, 1e-4, 1e15, 1e16, 1e17, 123456.789, 1 / 3]
    numbers += [float("inf"), -float("inf"), 2**53.0, 5e-324, 1.7976931348623157e308]
    numbers += [random.gauss(0, 1) * 10.0 ** random.randrange(-20, 25) for _ in range(200)]
    numbers += [x for (x,) in struct.iter_unpack("d", random.randbytes(800)) if x == x]
    for x in numbers:
        file.write(f"== float {x.hex()}\n{x!r}\n".encode())


warnings.simplefilter("ignore")  # from an encoder without nested tensors
random.seed(7)
torch.manual_seed(7)
with open(sys.argv[2], "wb") as out:
    {"tensors": write_tensors, "texts": write_texts}[sys.argv[1]](out)
