"""Writes files with torch.save for tests/io/torch_file_test.cpp, and compares them with files that C++
wrote.

Run: python3 tests/reference/torch_file.py WHAT FILE

generate  writes 500 state dicts, FILE.d/NUMBER.pt, and their number to FILE. Some have attributes,
          are compressed, end with a newline or seem to come from a big-endian machine.
refusals  writes files that must be rejected, FILE.d/NAME. Writes to FILE a line per file: its name,
          a tab and a part of the error. Files whose names begin with "good" may be loaded.
compare   reads FILE's folder: each NUMBER.pt and NUMBER.back.pt, which C++ saved after loading it.
          Writes the differences to FILE, a line each.
"""

import collections
import io
import os
import pathlib
import pickle
import random
import struct
import sys
import warnings
import zipfile

import torch

CASES = 500
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
            torch.complex128]
WHOLE = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
UNTYPED = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn,
           torch.float8_e5m2fnuz, torch.float8_e4m3fnuz, torch.float8_e8m0fnu,
           torch.float4_e2m1fn_x2, torch.complex32]


def numbers(rng, size, dtype):
    """Returns a tensor of random bits, including NaN bits. A bool is 0 or 1."""
    count = torch.Size(size).numel()
    if dtype == torch.bool:
        return torch.tensor([rng.random() < 0.5 for _ in range(count)], dtype=dtype).reshape(size)
    data = bytearray(rng.randbytes(count * dtype.itemsize))
    if not data:
        return torch.empty(size, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).clone().view(dtype).reshape(size)


def random_tensor(rng):
    dtype = rng.choice(FLOATING * 2 + WHOLE + UNTYPED)
    size = rng.choice([(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (2, 1, 4), (4, 3, 2, 2)])
    tensor = numbers(rng, size, dtype)
    change = rng.randrange(7)
    if change == 0 and tensor.dim() > 1:
        tensor = tensor.transpose(0, -1)
    elif change == 1 and tensor.dim() > 0:
        tensor = tensor[tensor.shape[0] // 2:]
    elif change == 2 and tensor.dim() > 0:
        tensor = tensor[::2]
    elif change == 3 and tensor.dim() > 0:
        tensor = tensor[:1].expand(min(5, tensor.shape[0] * 5), *tensor.shape[1:])
    elif change == 4 and dtype in (torch.complex64, torch.complex128):
        tensor = tensor.conj() if rng.random() < 0.5 else tensor.conj().imag
    elif change == 5 and dtype in FLOATING:
        tensor = torch.nn.Parameter(tensor, requires_grad=rng.random() < 0.7)
    elif change == 6 and dtype in FLOATING:
        tensor.requires_grad_()
    return tensor


def random_value(rng, depth, made):
    """Returns a random value. `made` collects tensors and containers that may be reused."""
    pick = rng.randrange(14 if depth > 0 else 9)
    if pick == 0:
        return rng.choice([None, True, False])
    if pick == 1:
        return rng.choice([0, 1, -1, 255, 256, 65535, 65536, -2**31, 2**31, 2**63 - 1, -2**63,
                           rng.randrange(-2**40, 2**40)])
    if pick == 2:
        return rng.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324, rng.random()])
    if pick == 3:
        return rng.choice(["", "adam", "schön \u20ac \U0001f600", "a'b\n", "x" * 300])
    if pick == 4 and made:
        return rng.choice(made)
    if pick < 9:
        value = random_tensor(rng)
    elif pick == 9:
        value = [random_value(rng, depth - 1, made) for _ in range(rng.randrange(5))]
    elif pick == 10:
        value = tuple(random_value(rng, depth - 1, made) for _ in range(rng.randrange(6)))
    elif pick == 11:
        value = torch.Size([rng.randrange(9) for _ in range(rng.randrange(4))])
    else:
        value = random_dict(rng, depth - 1, made)
    if pick > 4 and not isinstance(value, torch.Size):
        made.append(value)
    if isinstance(value, torch.Tensor) and value.dim() > 0 and rng.random() < 0.3:
        made.append(value.detach()[:1])
    return value


def random_dict(rng, depth, made):
    kind = rng.randrange(3)
    result = collections.OrderedDict() if kind == 0 else {}
    for i in range(rng.randrange(6)):
        result[i * 7 - 3 if kind == 1 else f"layer{i}.weight"] = random_value(rng, depth, made)
    if kind == 0 and rng.random() < 0.5:
        result._metadata = collections.OrderedDict({"": {"version": 1}})
    return result


def training(rng):
    """Returns the state dicts of a training run after one step."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3),
                                torch.nn.Linear(3, 1))
    kind = rng.choice([
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.Adam(p, amsgrad=True), lambda p: torch.optim.AdamW(p, lr=1e-2)])
    optimizer = kind(model.parameters())
    schedule = rng.choice([
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 2, 5]),
        lambda o: torch.optim.lr_scheduler.StepLR(o, 3),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 9),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.5 ** epoch),
        lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o)])
    scheduler = schedule(optimizer)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    scheduler.step(*([1.0] if "Plateau" in type(scheduler).__name__ else []))
    scaler.scale(torch.ones(()))
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
            "scheduler": scheduler.state_dict(), "scaler": scaler.state_dict(), "best": 0.5}


def set_attributes(value):
    """Sets attributes on all tensors in a value."""
    if isinstance(value, torch.Tensor):
        value.note = {"of": [1, "text", torch.ones(2)]}
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            set_attributes(item)


def vary(path, number):
    """Changes how the file is written without changing its contents, or changes only how its bytes are read."""
    if number % 10 == 1:
        rewrite(path, zipfile.ZIP_DEFLATED)
    elif number % 10 == 2:
        path.write_bytes(path.read_bytes() + (b"\n" if number % 20 == 2 else b"\r\n"))
    elif number % 20 == 10:
        rewrite(path, changed={"byteorder": b"big"})


def rewrite(path, compression=zipfile.ZIP_STORED, changed=None, dropped=()):
    """Rewrites an archive with other records or another compression."""
    with zipfile.ZipFile(path) as before:
        records = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w", compression) as after:
        for name, content in records.items():
            own = name.split("/", 1)[1]
            if own not in dropped:
                after.writestr(name, (changed or {}).get(own, content))


def generate(folder):
    for i in range(CASES):
        rng = random.Random(i)
        torch.manual_seed(i)
        value = training(rng) if i % 10 == 0 else random_dict(rng, 3, [])
        while True:  # torch.save rejects views with different types of the same memory
            if i % 10 == 3:
                set_attributes(value)
            try:
                torch.save(value, folder / f"{i}.pt")
                break
            except RuntimeError:
                value = random_dict(rng, 2, [])
        vary(folder / f"{i}.pt", i)
    return f"{CASES}\n"


class Numbering:
    """Numbers objects in the order of their first use, so that the sharing in two walks can be
    compared."""

    def __init__(self):
        self.numbers, self.kept = {}, []

    def __call__(self, key, thing):
        self.kept.append(thing)  # otherwise its address might be reused
        return self.numbers.setdefault(key, len(self.numbers))


def described(value, seen, storages):
    """Returns nested tuples that are equal if the values are equal bit for bit and share memory in
    the same places."""
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        known = len(storages.numbers)
        number = storages(storage._cdata, storage)
        data = b""
        if number == known:
            data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes()
        return ("tensor", seen(id(value), value), value.dtype, tuple(value.shape), value.stride(),
                value.storage_offset(), value.requires_grad, value.is_conj(), value.is_neg(),
                number, data)
    if isinstance(value, dict):
        items = [(type(k), k, described(v, seen, storages)) for k, v in value.items()]
        return ("dict", seen(id(value), value), items)
    if isinstance(value, list):
        return ("list", seen(id(value), value), [described(v, seen, storages) for v in value])
    if isinstance(value, tuple):
        return ("tuple", [described(v, seen, storages) for v in value])
    if isinstance(value, float):
        return ("float", struct.pack("d", value))
    return (type(value), value)


def compare(folder):
    differing = []
    for file in sorted(folder.glob("*.back.pt")):
        of = [described(torch.load(f, weights_only=True), Numbering(), Numbering())
              for f in (folder / file.name.replace(".back", ""), file)]
        if of[0] != of[1]:
            differing.append(f"{file.name}: {of[0]!r} is not {of[1]!r}\n")
    return "".join(differing)


def archive(path, data, records=None, byteorder="little", compression=zipfile.ZIP_STORED,
            version="3\n"):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as zip_file:
        warnings.simplefilter("ignore")  # about repeated names
        fixed = [("data.pkl", data), ("byteorder", byteorder), ("version", version)]
        for name, content in [*fixed, *(records or [])]:
            zip_file.writestr(f"archive/{name}", content)


class Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class OwnType:
    pass


def tensor_pickle(sizes=(2,), strides=(1,), offset=0, numel=4, requires_grad=False, key="0",
                  kind="FloatStorage", bits=None, of=b"storage"):
    """Returns a pickle of one tensor as torch.save writes it, with arbitrary arguments."""
    def dumped(value):
        return pickle.dumps(value, 2)[2:-1]

    arguments = [dumped(offset), dumped(sizes), dumped(strides), dumped(requires_grad),
                 b"ccollections\nOrderedDict\n)R"] + ([dumped(bits)] if bits else [])
    identity = (b"(" + dumped(of.decode()) + b"ctorch\n" + kind.encode() + b"\n" + dumped(key) +
                dumped("cpu") + dumped(numel) + b"tQ")
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + identity + b"".join(arguments) + b"tR."


def refused_pickles():
    def saved(value):
        return pickle.dumps(value, 2)

    yield "system", saved(Call(os.system, "touch ran")), "the global posix.system"
    yield "eval", saved({"a": Call(eval, "1")}), "the global __builtin__.eval"
    yield "stack-global", pickle.dumps(Call(os.system, "touch ran"), 4), "got number 149"
    yield "instance", b"\x80\x02(ios\nsystem\n.", "got number 105"
    yield "new-object", b"\x80\x02ccollections\nOrderedDict\n)\x81.", "got number 129"
    yield "set", saved({1, 2}), "the global __builtin__.set"
    yield "bytes", saved(b"\xff"), "the global _codecs.encode"
    yield "long", saved({"a": 2**63}), "expected an int of at most 64 bits, got an int of 9 bytes"
    yield "very-long", saved(2**4000), "got number 139"
    yield "not-utf8", b"\x80\x02X\x01\0\0\0\xff.", "expected a str of valid UTF-8"
    yield "surrogate", b"\x80\x02X\x03\0\0\0\xed\xa0\x80.", "expected a str of valid UTF-8"
    yield "text-too-long", b"\x80\x02X\xff\xff\xff\xff.", "expected 4294967295 more bytes, found 1"
    yield "cut", b"\x80\x02}", "byte 3: expected 1 more bytes"
    yield "no-line", b"\x80\x02ccollections", "expected a newline, found none"
    yield "empty-stack", b"\x80\x02.", "expected a value on the stack, found none"
    yield "no-mark", b"\x80\x02t.", "expected a mark"
    yield "below-mark", b"\x80\x02N(\x85.", "expected a value on the stack, found none"
    yield "mark-left", b"\x80\x02N(N.", "expected a pickle with a single value"
    yield "two-values", b"\x80\x02NN.", "expected a pickle with a single value"
    yield "more", b"\x80\x02N.N", "expected a pickle with a single value"
    yield "no-memo", b"\x80\x02h\1.", "expected a value at memo index 1"
    yield "far-memo", b"\x80\x02Nr\xff\xff\xff\xff.", "expected a memo index below 9, got 4294967295"
    yield "append-to-dict", b"\x80\x02}Na.", "expected a list to append to, got a dict"
    yield "item-of-list", b"\x80\x02]NNs.", "expected a dict to insert into, got a list"
    yield "odd-items", b"\x80\x02}(Nu.", "expected a value for each dict key"
    yield "key-of-float", saved({1.5: 1}), "str or int keys, got a float"
    yield "key-of-tuple", saved({(1,): 1}), "str or int keys, got a tuple"
    yield "key-of-bool", saved({True: 1}), "str or int keys, got a bool"
    # LibTorch's Dict uses an int as its own hash. These keys would all collide in it.
    at_one_place = [pow(11400714819323198485, -1, 2**64) * i % 2**64 for i in range(60)]
    yield ("colliding-keys", saved({(k + 2**63) % 2**64 - 2**63: 1 for k in at_one_place}),
           "dict keys with different hashes")
    yield "good-keys", saved({987 * i: i for i in range(1000)}), "nothing was thrown"
    yield "good-same-keys", b"\x80\x02}(" + b"K\1N" * 99 + b"u.", "nothing was thrown"
    yield "own-list", b"\x80\x02]q\0h\0a.", "containers without cycles, got a list"
    yield "own-dict", b"\x80\x02}q\0K\1(h\0tq\1K\2h\1s.", "expected a dict to insert into"
    yield "in-tuple", b"\x80\x02]q\0(h\0tq\1h\0h\1a.", "expected a pickle with a single value"
    yield "own-in-tuple", b"\x80\x02]q\0(h\0tq\1a.", "containers without cycles"
    yield "deep", b"\x80\x02" + b"]" * 1001 + b"a" * 1000 + b".", "nested at most 1000 levels deep"
    yield "deeper", b"\x80\x02" + b"]" * 100000 + b"a" * 99999 + b".", "at most 1000 levels deep"
    # A chain of 900 lists that is converted first and occurs again at the end of a second chain.
    yield ("deep-twice", b"\x80\x02](" + b"]" * 900 + b"a" * 899 + b"q\0" + b"]" * 200 + b"h\0a" +
           b"a" * 199 + b"e.", "at most 1000 levels deep")
    yield "call-nothing", b"\x80\x02N)R.", "expected a callable, got None"
    yield "call-dtype", b"\x80\x02ctorch\nfloat32\n)R.", "expected a callable, got a dtype"
    yield "dtype-itself", b"\x80\x02ctorch\nfloat32\n.", "expected only values and tensors, got a type"
    yield "no-arguments", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "got the end of the arguments"
    yield "attributes", b"\x80\x02}}b.", "expected an OrderedDict and a dict"
    yield "class", b"\x80\x02ctorch\nTensor\n)R.", "a callable, got a dtype or a class"
    from_type = b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n("
    yield ("attributes-of-dict", from_type + b"ccollections\nOrderedDict\nctorch\nTensor\n)}tR.",
           "expected a function that creates a tensor")
    yield ("attributes-of-subclass", from_type + b"ctorch._utils\n_rebuild_tensor_v2\nNNNtR.",
           "expected a tensor class, got None")
    many = {"list": b"]", "dict": b"}", "tuple": b")\x85", "text": b"U\0", "none": b"N" * 4}
    for name, value in many.items():
        yield f"many-of-{name}", b"\x80\x02" + value * 10**6 + b".", "increase max_expansion"
    key = b"X" + struct.pack("<I", 10**5) + b"k" * 10**5 + b"q\0"
    yield ("repeated-key", b"\x80\x02}" + key + b"Ns" + b"h\0Ns" * 1000 + b".",
           "increase max_expansion")
    yield "qtensor", b"\x80\x02ctorch._utils\n_rebuild_qtensor\n.", "_utils._rebuild_qtensor"
    yield "qint", b"\x80\x02ctorch\nQInt8Storage\n.", "the global torch.QInt8Storage"
    yield "persistent", b"\x80\x02N\x85Q.", "expected a storage ID"
    yield "other-persistent", tensor_pickle(of=b"module"), "expected a storage ID"
    yield "no-storage", tensor_pickle(key="7"), "expected a storage record 'archive/data/7'"
    yield "storage-short", tensor_pickle(numel=5), "storage '0': expected 5 of Float, found 4"
    yield "storage-long", tensor_pickle(numel=3), "storage '0': expected 3 of Float, found 4"
    yield "other-numel", tensor_pickle(kind="DoubleStorage"), "expected 4 of Double, found 2"
    yield "negative-numel", tensor_pickle(numel=-1), "expected -1 of Float"
    inside = "expected a tensor that fits in its storage of 4 elements"
    yield "too-large", tensor_pickle(sizes=(5,)), inside
    yield "strides", tensor_pickle(strides=(4,)), inside
    yield "offset", tensor_pickle(offset=3), inside
    yield "empty-offset", tensor_pickle(sizes=(0,), offset=2**60), inside
    yield "negative-offset", tensor_pickle(offset=-1), inside
    yield "negative-size", tensor_pickle(sizes=(-1,)), inside
    yield "negative-stride", tensor_pickle(strides=(-1,)), inside
    yield "more-strides", tensor_pickle(strides=(1, 1)), inside
    yield "overflow", tensor_pickle(sizes=(2**62, 4), strides=(0, 0)), inside
    yield "overflow-empty", tensor_pickle(sizes=(0, 2**62, 2**62), strides=(1, 1, 1)), inside
    yield "overflow-reach", tensor_pickle(sizes=(2**32, 3), strides=(2**32, 1)), inside
    yield "overflow-offset", tensor_pickle(offset=2**63 - 1, strides=(2**63 - 1,)), inside
    yield "dimensions", tensor_pickle(sizes=(1,) * 65, strides=(1,) * 65), "at most 64 dimensions"
    yield "sizes-of-text", tensor_pickle(sizes=("2",)), "expected a tuple of sizes, got a str"
    yield ("gradients", tensor_pickle(kind="IntStorage", requires_grad=True),
           "expected a floating-point or complex tensor to require gradients, got Int")
    yield "conj", tensor_pickle(bits={"conj": True}), "'conj' for a complex"
    yield "bit", tensor_pickle(bits={"alive": True}), "got 'alive' of Float"


def refusals(folder):
    data = [("data/0", struct.pack("4f", 1, 2, 3, 4))]
    lines = []

    def expect(name, error):
        lines.append(f"{name}\t{error}\n")

    for name, pickled, error in refused_pickles():
        archive(folder / name, pickled, data)
        expect(name, error)
    saved = {
        "user-class": (OwnType(), "the global __main__.OwnType"),
        "numpy-scalar": (torch.ones(1).numpy().sum(), "the global numpy"),
        "sparse": (torch.eye(2).to_sparse(), "the global torch._utils._rebuild_sparse_tensor"),
        "complex": (1j, "the global __builtin__.complex"),
        "device": (torch.device("cpu"), "the global torch.device"),
        "storage": (torch.ones(2).untyped_storage(), "expected only values and tensors, got a storage")}
    for name, (value, error) in saved.items():
        torch.save(value, folder / name)
        expect(name, error)
    torch.save({"a": torch.ones(2)}, folder / "legacy", _use_new_zipfile_serialization=False)
    expect("legacy", "a bare pickle, as written by torch.save before torch 1.6")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(folder / "script")
    expect("script", "a TorchScript archive")
    with zipfile.ZipFile(folder / "plain-zip", "w") as zip_file:
        zip_file.writestr("folder/hello.txt", "hello")
    expect("plain-zip", "expected an archive written by torch.save with a record 'folder/data.pkl'")
    zipfile.ZipFile(folder / "empty-zip", "w").close()
    expect("empty-zip", "a file of 22 bytes without the expected header")
    good = tensor_pickle()
    archive(folder / "good", good, data)
    expect("good", "nothing was thrown")
    archive(folder / "no-data", good)
    expect("no-data", "expected a storage record 'archive/data/0', found none")
    archive(folder / "bzip2", good, data, compression=zipfile.ZIP_BZIP2)
    expect("bzip2", "expected a stored or deflated record, got method 12")
    archive(folder / "bomb", good, [("data/0", bytes(100_000_000))],
            compression=zipfile.ZIP_DEFLATED)
    expect("bomb", "to load the file, increase max_expansion")
    archive(folder / "byte-order", good, data, byteorder="middle")
    expect("byte-order", "expected 'little' or 'big', got 'middle'")
    for version in ["0", "11", "x", ""]:
        archive(folder / f"version-{version}", good, data, version=version)
        expect(f"version-{version}", f"expected a version from 1 to 10, got '{version}'")
    torch.save({"a": torch.ones(2)}, folder / "no-version")
    rewrite(folder / "no-version", dropped=["version"])
    expect("no-version", "expected a record 'no-version/version', found none")
    torch.save({"a": torch.ones(2, dtype=torch.uint16)}, folder / "untyped-big-endian")
    rewrite(folder / "untyped-big-endian", changed={"byteorder": b"big"})
    expect("untyped-big-endian", "expected a typed storage class in a file from a big-")
    (folder / "page").write_text("\n<!DOCTYPE html><html></html>")
    expect("page", "expected a zip archive written by torch.save, got an HTML page")
    archive(folder / "same-name", good, data + data)
    expect("same-name", "'archive/data/0': the zip archive contains two records with this name")
    (folder / "empty").write_bytes(b"")
    expect("empty", "a file of 0 bytes without the expected header")
    damages = {
        "damaged-version": (b"3\nPK", b"4\nPK", "version': expected the checksum"),
        "damaged-name": (b"name/version", b"name/Version", "does not match the zip directory")}
    for name, (good_bytes, bad_bytes, error) in damages.items():
        torch.save({"a": torch.ones(2)}, folder / name)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data.replace(good_bytes, bad_bytes, 1))
        expect(name, error)
    torch.serialization.set_crc32_options(False)
    torch.save({"a": torch.ones(2)}, folder / "good-no-checksums")
    expect("good-no-checksums", "nothing was thrown")
    return "".join(lines)


def main():
    what, file = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "compare":
        result = compare(file.parent / "generate.d")
    else:
        folder = file.with_name(file.name + ".d")
        folder.mkdir()
        result = {"generate": generate, "refusals": refusals}[what](folder)
    file.write_text(result)


if __name__ == "__main__":
    main()
