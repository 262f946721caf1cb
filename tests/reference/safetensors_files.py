"""Python's safetensors, for comparison in tests/io/safetensors_test.cpp.

Run: python3 tests/reference/safetensors_files.py WHAT FOLDER

made      writes 500 generated files into FOLDER.
compared  compares every file of "made" next to FOLDER with the file of that name in "again", to which
          C++ saved what it loaded, and with the file in "more", to which C++ added views.
flipped   reads the files "flips/N" that C++ accepted, and compares them with "flips/N.again", to which
          C++ saved what it loaded.
trained   trains a model and writes weights, input, and output into the file FOLDER.
answered  runs the model with the weights and the input of "from_cpp" next to FOLDER and compares the
          output.

The last four write a line for each difference and, at the end, how many were equal. Exits with 77
if Python has no safetensors.
"""

import pathlib
import sys

import torch

try:
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError:
    print("needs the Python package safetensors", file=sys.stderr)
    sys.exit(77)

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32,
          torch.int64, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.complex64, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e4m3fnuz,
          torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def random_tensor(generator):
    def below(n):
        return int(torch.randint(n, (), generator=generator))

    dtype = DTYPES[below(len(DTYPES))]
    shape = [below(5) for _ in range(below(4))]
    size = torch.empty((), dtype=dtype).element_size()
    count = torch.Size(shape).numel() * size
    high = 2 if dtype == torch.bool else 256
    data = torch.randint(high, (count,), generator=generator, dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


def make(folder):
    folder.mkdir()
    for i in range(500):
        generator = torch.Generator().manual_seed(i)
        count = int(torch.randint(12, (), generator=generator))
        state = {f"layer{k % 3}.größe {k}": random_tensor(generator) for k in range(count)}
        metadata = [None, {"format": "pt"}, {"a\"b\\": "\n\u00e9\U0001f600", "": ""}][i % 3]
        save_file(state, folder / str(i), metadata)


def metadata_of(file):
    with safe_open(file, "pt") as opened:
        return opened.metadata()


def compare(folder):
    equal = 0
    for made in sorted((folder / "made").iterdir()):
        again, more = folder / "again" / made.name, folder / "more" / made.name
        before, views = load_file(made), load_file(more)
        metadata = metadata_of(made)
        good = metadata == metadata_of(again) == metadata_of(more)
        if metadata is None or len(metadata) < 2:  # Python writes several keys in any order
            good &= made.read_bytes() == again.read_bytes()
        good &= all(same(views[name], tensor) for name, tensor in before.items())
        good &= all(same(views[f"{name} twice"], tensor) for name, tensor in before.items())
        good &= all(same(views[f"{name} turned"], tensor.permute(*reversed(range(tensor.dim()))))
                    for name, tensor in before.items() if tensor.dim() > 1)
        equal += good
        if not good:
            print(made.name, "differs", file=out)
    print(equal, "equal", file=out)


def compare_flipped(folder):
    equal = 0
    for again in (folder / "flips").glob("*.again"):
        a, b = load_file(again.with_suffix("")), load_file(again)
        if a.keys() == b.keys() and all(same(a[name], b[name]) for name in a):
            equal += 1
        else:
            print(again.name, "differs", file=out)
    print(equal, "equal", file=out)


def model():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                               torch.nn.Flatten(), torch.nn.Linear(144, 10))


def train(file):
    torch.manual_seed(1)
    net = model()
    x, y = torch.randn(32, 1, 8, 8), torch.randint(10, (32,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        save_file({**net.state_dict(), "x": x, "y": net.eval()(x)}, file)


def answer(folder):
    state = load_file(folder / "from_cpp")
    x, y = state.pop("x"), state.pop("y")
    net = model()
    net.load_state_dict(state)
    with torch.no_grad():
        print(int(same(net.eval()(x), y)), "equal", file=out)


what, target = sys.argv[1], pathlib.Path(sys.argv[2])
torch.set_num_threads(1)
if what == "made":
    make(target)
elif what == "trained":
    train(target)
else:
    with open(target, "w", encoding="utf-8") as out:
        {"compared": compare, "flipped": compare_flipped, "answered": answer}[what](target.parent)
