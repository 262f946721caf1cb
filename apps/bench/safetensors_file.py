"""Loading and saving a safetensors file of 1 GiB: sconce against Python.

Runs the program and its Python peer in turn, whole processes with the same number of threads, each
on a file that is in the page cache, and prints the median times and ratios. The files lie in the
folder that it is started in; in /dev/shm the disk's moods stay out of it. The Python to compare
with is the one that runs this script; it needs the package safetensors:
    build/setup/torch-2.15.0/bin/python apps/bench/safetensors_file.py build/default/bin/bench-safetensors
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def peer(file, copy):
    from safetensors.torch import load_file, save_file

    start = time.perf_counter()
    state = load_file(file)
    total = sum(tensor.sum().item() for tensor in state.values())
    loaded = time.perf_counter()
    save_file(state, copy)
    saved = time.perf_counter()
    print("python-load", loaded - start)
    print("python-save", saved - loaded)
    print("python-sum", total)


def make(file):
    import torch
    from safetensors.torch import save_file

    save_file({f"layer{i}.weight": torch.rand(2048, 2048) for i in range(64)}, file)


def times(command, copy):
    os.sync()  # else one's pages that are not written yet slow the other down
    out = subprocess.run([*command, copy], check=True, stdout=subprocess.PIPE, text=True).stdout
    copy.unlink()
    return {name: float(value) for name, value in map(str.split, out.splitlines())}


def main(program, runs=16):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file, copy = pathlib.Path(folder, "file"), pathlib.Path(folder, "copy")
        subprocess.run([sys.executable, __file__, "--make", file], check=True)
        commands = [program, file], [sys.executable, __file__, "--peer", file]
        pairs = [{} for _ in range(runs + 1)]
        for i, pair in enumerate(pairs):
            for command in commands[::-1 if i % 2 else 1]:  # each is first in half of the pairs
                pair |= times(command, copy)
        del pairs[0]
    if any(abs(pair["sconce-sum"] / pair["python-sum"] - 1) > 1e-6 for pair in pairs):
        sys.exit("the sums differ")
    for name in ("sconce-load", "python-load", "sconce-save", "python-save", "sconce-sync"):
        column = [pair[name] for pair in pairs]
        print(f"{name}: median {statistics.median(column):.3f} s"
              f" ({min(column):.3f} to {max(column):.3f}, {runs} runs)")
    for what in ("load", "save"):
        ratios = [pair[f"sconce-{what}"] / pair[f"python-{what}"] for pair in pairs]
        print(f"{what}: {statistics.median(ratios):.2f} of Python's time"
              f" ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    {"--peer": peer, "--make": make}.get(sys.argv[1], main)(*sys.argv[1 + (sys.argv[1][0] == "-"):])
