"""Writes the results of Python's autocast for tests/amp/autocast_test.cpp, which runs this script with its own LibTorch.

Run: python3 tests/reference/autocast.py dtypes|scopes FILE

dtypes: for every expression, evaluated under CPU autocast to bfloat16 and to float16, the line
"DTYPE RESULT EXPRESSION", where RESULT is the result's dtype or "refused".
scopes: generated sequences of autocast scopes. Each line "> COMMAND" is followed by a line "= STATE" with
Python's state after the command.
"""

import random
import sys
import warnings

import torch
from torch.nn import functional as F

LOWER = """
torch.mm(f, f)
torch.matmul(f, f)
torch.bmm(b, b)
torch.addmm(f, f, f)
torch.addbmm(f, b, b)
torch.baddbmm(b, b, b)
torch.einsum('ij,jk->ik', f, f)
torch.linalg.vecdot(f, f)
F.linear(f, f)
F.conv1d(b, b)
F.conv2d(c, c)
F.conv3d(e, e)
F.conv_transpose1d(b, b)
F.conv_transpose2d(c, c)
F.scaled_dot_product_attention(b, b, b)
"""
FP32 = """
F.mse_loss(h, h)
F.l1_loss(h, h)
F.smooth_l1_loss(h, h)
F.huber_loss(h, h)
F.kl_div(h, h, reduction='sum')
F.soft_margin_loss(h, h)
F.binary_cross_entropy(h, h)
F.cosine_embedding_loss(h, h, h[0])
F.triplet_margin_loss(h, h, h)
F.multi_margin_loss(h, i)
F.nll_loss(h, i)
F.avg_pool3d(e.to(h.dtype), 1)
torch.cdist(h, h)
torch.prod(h)
torch.trace(h)
torch.polar(h, h)
torch.quantile(h, 0.5)
torch.linalg.inv(h + torch.eye(3).to(h))
torch.fft.fft(h)
"""
PROMOTE = """
torch.cat([f, h])
torch.cat([h, f])
torch.cat([h, h])
torch.stack([f, h])
torch.stack([h, f])
torch.stack([h, h])
torch.index_copy(f, 0, i, h)
torch.index_copy(h, 0, i, f)
torch.index_copy(h, 0, i, h)
torch.cat([h, h, f])
"""
UNCHANGED = """
torch.mv(f, f[0])
torch.linalg.matrix_norm(h)
torch.exp(h)
torch.relu(h)
torch.softmax(h, 0)
torch.add(f, f)
torch.mul(f, h)
torch.sum(h)
torch.sqrt(f)
F.layer_norm(h, (3,))
torch.mm(d, d)
F.mse_loss(d, d)
"""


def write_dtypes(file):
    f, d, i = torch.ones(3, 3), torch.ones(3, 3, dtype=torch.float64), torch.arange(3)
    b, c, e = torch.ones(3, 3, 3), torch.ones(3, 3, 3, 3), torch.ones(3, 3, 3, 3, 3)
    for dtype in [torch.bfloat16, torch.float16]:
        h = f.to(dtype)
        names = {"torch": torch, "F": F, "f": f, "d": d, "i": i, "b": b, "c": c, "e": e, "h": h}
        for source in (LOWER + FP32 + PROMOTE + UNCHANGED).split("\n"):
            if not source:
                continue
            try:
                with torch.autocast("cpu", dtype=dtype):
                    result = eval(source, names).dtype
            except RuntimeError:
                result = "refused"
            file.write(f"{dtype} {result} {source}\n")


def state(note):
    parts = [note]
    for device in ["cpu", "cuda"]:
        parts += [str(int(torch.is_autocast_enabled(device))), str(torch.get_autocast_dtype(device))]
    nesting = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return " ".join(parts + [str(int(torch.is_autocast_cache_enabled())), str(nesting)])


def enter(device, dtype, enabled, cache):
    """Returns the entered scope, or None if it was rejected, and a note about it."""
    arguments = {"enabled": enabled == "1"}
    if dtype != "-":
        arguments["dtype"] = getattr(torch, dtype.removeprefix("torch."))
    if cache != "-":
        arguments["cache_enabled"] = cache == "1"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scope = torch.autocast(device, **arguments)
        except RuntimeError:
            return None, "refused"
    scope.__enter__()
    return scope, ("warned" if caught else "silent")


def write_scopes(file):
    dtypes = ["-", "-", "torch.bfloat16", "torch.float16", "torch.float32", "torch.float64"]
    for _ in range(200):
        open_scopes = []
        for _ in range(random.randrange(4, 20)):
            kind = random.choice(["enter"] * 4 + ["exit"] * 3 + ["dtype", "cache"])
            command, note = kind, "silent"
            if kind == "enter":
                arguments = [random.choice(["cpu"] * 4 + ["cuda"] * 2 + ["meta"]),
                             random.choice(dtypes), random.choice("1110"), random.choice("--01")]
                command += " " + " ".join(arguments)
                scope, note = enter(*arguments)
                if scope:
                    open_scopes.append(scope)
            elif kind == "exit":
                if not open_scopes:
                    continue
                open_scopes.pop().__exit__(None, None, None)
            elif kind == "dtype":
                dtype = random.choice([torch.bfloat16, torch.float16])
                torch.set_autocast_dtype("cpu", dtype)
                command += f" {dtype}"
            else:
                enabled = random.random() < 0.5
                torch.set_autocast_cache_enabled(enabled)
                command += f" {int(enabled)}"
            file.write(f"> {command}\n= {state(note)}\n")
        while open_scopes:
            open_scopes.pop().__exit__(None, None, None)
            file.write(f"> exit\n= {state('silent')}\n")


random.seed(7)
with open(sys.argv[2], "w") as out:
    {"dtypes": write_dtypes, "scopes": write_scopes}[sys.argv[1]](out)
