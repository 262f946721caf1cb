"""Safetensors files of `size` tensors of 16 MiB, which lie in the page cache: loading with a sum over
each tensor, and saving."""

import os
import tempfile

import torch


def saved(size):
    """A folder, which exists as long as its object, the file in it, and the tensors of the file."""
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
