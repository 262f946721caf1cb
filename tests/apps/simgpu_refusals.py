#!/usr/bin/env python3
"""Checks that simulated GPUs reject the calls that apps/simgpu/refusals.md lists.

  build/default/bin/sconce-simgpu --hide-real-gpus --races throw -- python tests/apps/simgpu_refusals.py

Each row of the page's two tables is a call. The CPU must accept it, and cuda:0 must raise an error that begins with the
row's text. With all its tensors on cuda:0, a call in the second table must be accepted. The page's statements outside the
tables are checked as well. Fails with a list of the rows that differ.
"""
import pathlib
import re
import sys

import torch
from torch import ones
from torch.distributed import _symmetric_memory
from torch.utils import _pytree

PAGE = pathlib.Path(__file__).resolve().parents[2] / "apps/simgpu/refusals.md"
FEWEST_ROWS = 25


def zeros(*sizes):
    """Returns zeros, which are valid indices for any tensor."""
    return torch.zeros(sizes, dtype=torch.int64)


def typed(**sizes):
    """Returns a function from a type to arguments with these names and sizes."""
    return lambda dtype: {name: torch.ones(size, dtype=dtype) for name, size in sizes.items()}


def with_tensor(sizes, **others):
    """Returns a function from a type to arguments in which `self` is a tensor of that type."""
    return lambda dtype: {"self": torch.ones(sizes, dtype=dtype), **others}


PICTURE, VOLUME = (1, 1, 4, 4), (1, 1, 4, 4, 4)
TWICE_AS_LARGE = {"output_size": [8, 8], "align_corners": False}
OF_TYPE = {  # operator: its arguments of a type
    "aten::mm": typed(self=(2, 2), mat2=(2, 2)),
    "aten::addmm": typed(self=(2, 2), mat1=(2, 2), mat2=(2, 2)),
    "aten::addmv": typed(self=(2,), mat=(2, 2), vec=(2,)),
    "aten::bmm": typed(self=(1, 2, 2), mat2=(1, 2, 2)),
    "aten::baddbmm": typed(self=(1, 2, 2), batch1=(1, 2, 2), batch2=(1, 2, 2)),
    "aten::dot": typed(self=(2,), tensor=(2,)),
    "aten::vdot": typed(self=(2,), other=(2,)),
    "aten::avg_pool2d": with_tensor(PICTURE, kernel_size=[2, 2]),
    "aten::avg_pool3d": with_tensor(VOLUME, kernel_size=[2, 2, 2]),
    "aten::max_pool2d_with_indices": with_tensor(PICTURE, kernel_size=[2, 2]),
    "aten::max_pool3d_with_indices": with_tensor(VOLUME, kernel_size=[2, 2, 2]),
    "aten::upsample_bilinear2d": with_tensor(PICTURE, **TWICE_AS_LARGE),
    "aten::_upsample_bilinear2d_aa": with_tensor(PICTURE, **TWICE_AS_LARGE),
    "aten::upsample_bicubic2d": with_tensor(PICTURE, **TWICE_AS_LARGE),
    "aten::igamma": typed(self=(2,), other=(2,)),
    "aten::igammac": typed(self=(2,), other=(2,)),
    "aten::native_dropout_backward": lambda dtype: {
        "grad_output": torch.ones(2, dtype=dtype), "mask": torch.ones(2, dtype=torch.bool), "scale": 2.0},
    "aten::histc": with_tensor((4,), bins=4, min=0, max=4),
    "aten::_amp_foreach_non_finite_check_and_unscale_": lambda dtype: {
        "self": [torch.ones(2, dtype=dtype)], "found_inf": torch.zeros(1), "inv_scale": ones(1)},
}

ON_DEVICES = {  # operator: its arguments. In a list, the last tensor is the one on another device.
    "aten::add.Tensor": lambda: {"self": ones(2, 2), "other": ones(2, 2)},
    "aten::where.self": lambda: {"condition": ones(2) > 0, "self": ones(2), "other": ones(2)},
    "aten::lerp.Tensor": lambda: {"self": ones(2), "end": ones(2), "weight": ones(2)},
    "aten::index.Tensor": lambda: {"self": ones(2), "indices": [zeros(1)]},
    "aten::_index_put_impl_": lambda: {"self": ones(2), "indices": [zeros(1)], "values": ones(1)},
    "aten::mm": lambda: {"self": ones(2, 2), "mat2": ones(2, 2)},
    "aten::index_select": lambda: {"self": ones(2), "dim": 0, "index": zeros(1)},
    "aten::gather": lambda: {"self": ones(2), "dim": 0, "index": zeros(1)},
    "aten::_fused_adam_": lambda: {
        "self": [ones(2)], "grads": [ones(2)], "exp_avgs": [ones(2)], "exp_avg_sqs": [ones(2)], "max_exp_avg_sqs": [],
        "state_steps": [ones(())], "lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.0, "eps": 1e-8,
        "amsgrad": False, "maximize": False},
    "aten::cat": lambda: {"tensors": [ones(2), ones(2)]},
    "aten::scatter.value": lambda: {"self": ones(2), "dim": 0, "index": zeros(1), "value": 1.0},
    "aten::nll_loss_forward": lambda: {
        "self": ones(2, 2), "target": zeros(2), "weight": None, "reduction": 1, "ignore_index": -100},
    "aten::native_layer_norm": lambda: {
        "input": ones(2, 2), "normalized_shape": [2], "weight": ones(2), "bias": ones(2), "eps": 1e-5},
    "aten::native_batch_norm": lambda: {
        "input": ones(2, 3), "weight": ones(3), "bias": ones(3), "running_mean": ones(3), "running_var": ones(3),
        "training": True, "momentum": 0.1, "eps": 1e-5},
    "aten::take": lambda: {"self": ones(2), "index": zeros(1)},
    "aten::searchsorted.Tensor": lambda: {"sorted_sequence": ones(2), "self": ones(2)},
}


def rows(title):
    """Returns the rows of the table in that section, as lists of cells."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("| aten::")]


def operator(name):
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def moved(arguments, device):
    return _pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), arguments)


def error_of(function, **arguments):
    """Returns the error of the call, or None if it is accepted."""
    try:
        function(**arguments)
        torch.cuda.synchronize()
    except Exception as error:
        return str(error)
    return None


def first_line(error):
    return error.partition("\n")[0]


def difference(name, taken, refused, text):
    """Returns how the calls differ from a row, or None. `taken` contains arguments that must be accepted, keyed by
    position."""
    for place, arguments in taken.items():
        error = error_of(operator(name), **arguments)
        if error is not None:
            return f"refused {place}: {first_line(error)}"
    error = error_of(operator(name), **refused)
    if error is None:
        return "taken"
    return None if error.startswith(text) else f"refused in other words: {first_line(error)}"


def of_type(name, type_name, text, _):
    if name not in OF_TYPE:
        return "not known to this script"
    arguments = OF_TYPE[name](getattr(torch, type_name))
    return difference(name, {"on the CPU": arguments}, moved(arguments, "cuda:0"), text)


def on_devices(name, place, text, _):
    found = re.fullmatch(r"(\w+), on (?:the )?(CPU|cuda:1)", place)
    arguments = ON_DEVICES.get(name, dict)()
    if not found or found[1] not in arguments:
        return "not known to this script"
    argument, device = found[1], found[2].lower()
    on_gpu, refused = moved(arguments, "cuda:0"), moved(arguments, "cuda:0")
    if isinstance(refused[argument], list):
        refused[argument][-1] = refused[argument][-1].to(device)
    else:
        refused[argument] = refused[argument].to(device)
    return difference(name, {"on the CPU": arguments, "on cuda:0": on_gpu}, refused, text)


def check_table(title, check, known):
    """Returns the number of rows, and the rows that differ."""
    table = rows(title)
    found = [(f"{title}: {row[0]}, {row[1]}", check(*row)) for row in table]
    unused = [f"{title}: {name}: no row has it" for name in sorted(set(known) - {row[0] for row in table})]
    return len(table), [f"{row}: {what}" for row, what in found if what] + unused


def taken_beside_the_tables():
    """Returns the calls that are accepted according to the text of the page."""
    gpu, empty = ones(2, 2).cuda(), zeros(0, 2).cuda()
    return {
        "mm of empty tensors": lambda: empty @ empty.T,
        "add of a number on the CPU": lambda: gpu + torch.tensor(1.0),
        "where of a number on the CPU": lambda: torch.where(gpu > 0, gpu, torch.tensor(0.0)),
        "a read by indices on the CPU": lambda: gpu[zeros(1)],
        "a write by indices on the CPU": lambda: gpu.index_put_((zeros(1),), gpu[0]),
        "a write of one number on the CPU by a mask": lambda: gpu.index_put_((gpu > 0,), ones(1)),
    }


def refused_beside_the_tables():
    """Returns the calls that are rejected, and the beginnings of their errors. The CPU has no kernel for the last
    call."""
    gpu, whole, heads = ones(2, 2).cuda(), zeros(2, 2).cuda(), ones(2, 2, 8, 16).cuda()
    attention = "_cudnn_attention_forward"
    type_error = "\"addmm_cuda\" not implemented for 'Long'"
    return {
        "symmetric memory": (lambda: _symmetric_memory.empty(4, device="cuda"),
                             "CUDA driver error: not supported by simulated GPUs"),
        "addmm_": (lambda: whole.addmm_(whole, whole), type_error),
        "mm with out": (lambda: torch.mm(whole, whole, out=whole.clone()), type_error),
        "mm with out on the CPU": (lambda: torch.mm(gpu, gpu, out=ones(2, 2)),
                                   "Expected all tensors to be on the same device, but got out is on cpu"),
        attention: (lambda: getattr(torch.ops.aten, attention)(heads, heads, heads, None, None, None, 8, 8, False),
                    f"simulated GPUs: aten::{attention} is not supported"),
    }


def check_beside_the_tables():
    errors = {name: error_of(call) for name, call in taken_beside_the_tables().items()}
    wrong = [f"{name}: refused: {first_line(error)}" for name, error in errors.items() if error is not None]
    for name, (call, text) in refused_beside_the_tables().items():
        error = error_of(call)
        if error is None or not error.startswith(text):
            wrong.append(f"{name}: {'taken' if error is None else first_line(error)}")
    return wrong


def check_still_computes():
    """A GPU remains usable after a rejected call, unlike after a failed kernel."""
    total = ones(2, 2).cuda().sum().item()
    return [] if total == 4 else [f"after the refusals, cuda:0 sums four ones to {total}"]


def main():
    if torch.cuda.device_count() < 2:
        sys.exit("needs two GPUs: run this by sconce-simgpu")
    types, wrong = check_table("Types", of_type, OF_TYPE)
    devices, wrong_devices = check_table("Devices", on_devices, ON_DEVICES)
    wrong += wrong_devices + check_beside_the_tables() + check_still_computes()
    if types + devices < FEWEST_ROWS:
        wrong.append(f"{PAGE.name} has {types + devices} rows, fewer than {FEWEST_ROWS}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{types} types and {devices} devices are refused")


if __name__ == "__main__":
    main()
