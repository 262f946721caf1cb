"""Safetensors files in the page cache, with `size` tensors of 16 MiB each: loading them and summing each tensor, and
saving them.
"""

import os
import tempfile

import torch


def saved(size):
    """A folder that exists for the lifetime of this object, together with the file in it and that file's tensors."""
    from safetensors.torch import save_file

    torch.manual_seed(0)
    state = {f"layer{i}.weight": torch.rand(2048, 2048) for i in range(size)}
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "file")
    save_file(state, path)
    return folder, path, state


def load_and_sum(path):
    from safetensors.torch import load_file

    return sum(tensor.sum().item() for tensor in load_file(path).values())


def load(variant, size):
    folder, path, _ = saved(size)
    return [load_and_sum(path)], lambda folder=folder: load_and_sum(path)


def save(variant, size):
    from safetensors.torch import save_file

    folder, path, state = saved(size)
    return [load_and_sum(path)], lambda folder=folder: save_file(state, path)
