"""Trains with Python's optimizers, like tests/optim/training.hpp with sconce's.

Run: python3 tests/reference/optim.py FOLDER

Each line of FOLDER/cases is a case: "name optimizer dtype tensor_lr sparse | arguments | of the second group", with
the last two as Python's keyword arguments. Writes to FOLDER/results, after a line "= name", a line "key bytes"
for each tensor and "groups text". If FOLDER/name.pt exists, the training run started in C++, and its second half
runs here. Its last state dict is then saved as FOLDER/name.python.pt.
"""

import pathlib
import sys

import torch

SIZES = [[(3, 5), (67,), (), (4,)], [(2, 3, 4), (33,)]]
STEPS = 20


def numbers(seed, size, dtype):
    if dtype.is_complex:
        return torch.complex(numbers(seed, size, torch.float32),
                             numbers(seed + 17, size, torch.float32))
    count = torch.Size(size).numel()
    whole = (torch.arange(count) * 7919 + seed * 104729) % 2003 - 1001
    return (whole.double() / 1024).to(dtype).reshape(size)


def set_gradients(parameters, step, sparse):
    for i, p in enumerate(parameters):
        p.grad = None
        if i == 3 or (i == 5 and step % 3 == 1):
            continue
        p.grad = numbers(100 * step + i, p.shape, p.dtype)
        if sparse and p.dim() > 0:
            rows = torch.arange(step % 2, len(p), 2).repeat(2)
            p.grad = torch.sparse_coo_tensor(rows[None], p.grad[rows], p.shape)


def load(optimizer, state):
    """Loads a state. Python casts NAdam's mu_product, a float32 number, to the type of its parameter; sconce does not."""
    optimizer.load_state_dict(state)
    for group, saved in zip(optimizer.param_groups, state["param_groups"]):
        for p, index in zip(group["params"], saved["params"]):
            if "mu_product" in state["state"].get(index, {}):
                optimizer.state[p]["mu_product"] = state["state"][index]["mu_product"].clone()


def halve_rates(optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def train(folder, name, kind, dtype, tensor_lr, sparse, arguments, of_second):
    dtype, arguments = getattr(torch, dtype), eval(f"dict({arguments})")
    lr_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    of_second = eval(f"dict({of_second})")
    if tensor_lr == "1":
        for options in (arguments, of_second):
            options["lr"] = torch.tensor(options["lr"], dtype=lr_dtype)
    groups, index = [], 0
    for sizes in SIZES:
        params = [numbers(1000 + index + i, size, dtype) for i, size in enumerate(sizes)]
        groups.append({"params": [p.requires_grad_() for p in params]})
        index += len(sizes)
    groups[1].update(of_second)
    optimizer = getattr(torch.optim, kind)(groups, **arguments)
    parameters = [p for group in groups for p in group["params"]]
    first = 0
    if (folder / f"{name}.pt").exists():
        half = torch.load(folder / f"{name}.pt", weights_only=True)
        first = STEPS // 2
        load(optimizer, half["optimizer"])
        with torch.no_grad():
            for p, value in zip(parameters, half["parameters"]):
                p.copy_(value)
    for step in range(first, STEPS):
        if step == 5:
            halve_rates(optimizer)
        set_gradients(parameters, step, sparse == "1")
        optimizer.step()
    if first:
        torch.save(optimizer.state_dict(), folder / f"{name}.python.pt")
    return parameters, optimizer.state_dict()


def in_hex(tensor):
    return bytes(tensor.detach().reshape(-1).view(torch.uint8).tolist()).hex()


def option(value):
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, tuple):
        return " ".join(option(v) for v in value)
    return f"{float(value):.17g}"


def write_results(name, parameters, state, out):
    print("=", name, file=out)
    for i, p in enumerate(parameters):
        print(f"parameter.{i}", in_hex(p), file=out)
    for i, tensors in state["state"].items():
        for key, tensor in tensors.items():
            print(f"state.{i}.{key}", in_hex(tensor), file=out)
    for i, group in enumerate(state["param_groups"]):
        for key, value in group.items():
            text = value if key == "params" else option(value)
            print(f"group.{i}.{key}", text, file=out)


def main(folder):
    folder = pathlib.Path(folder)
    with open(folder / "results", "w") as out:
        for line in (folder / "cases").read_text().splitlines():
            words, arguments, of_second = line.split("|")
            parameters, state = train(folder, *words.split(), arguments, of_second)
            write_results(words.split()[0], parameters, state, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
