"""The optimizer's step and the clipping of gradients: sconce and LibTorch against Python.

Runs the program and its Python peer in turn, whole processes with the same number of threads, and
prints each one's median time a call and the median ratios. The Python to compare with is the one
that runs this script:
    build/setup/torch-2.15.0/bin/python apps/bench/optimizer.py build/default/bin/bench-optimizer
"""

import statistics
import subprocess
import sys
import time


def measure(name, call):
    times = []
    for _ in range(120):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(name, statistics.median(times[20:]))


def peer():
    import torch

    def parameters():
        made = [torch.randn(64).requires_grad_() for _ in range(1000)]
        for parameter in made:
            parameter.grad = torch.randn(64)
        return made

    adamw = torch.optim.AdamW(parameters(), fused=True)
    measure("python-adamw", adamw.step)
    to_clip = parameters()
    clip = torch.nn.utils.clip_grad_norm_
    measure("python-clip", lambda: clip(to_clip, 1.0, foreach=True))


def times(command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(seconds) for name, seconds in map(str.split, out.splitlines())}


def main(program, runs=9):
    commands = [program], [sys.executable, __file__, "--peer"]
    all_times = [times(commands[0]) | times(commands[1]) for _ in range(runs)]
    for name in all_times[0]:
        column = [one[name] for one in all_times]
        print(f"{name}: median {1e3 * statistics.median(column):.3f} ms"
              f" ({1e3 * min(column):.3f} to {1e3 * max(column):.3f}, {runs} runs)")
    for slow, fast in (("libtorch-adamw", "sconce-adamw"), ("python-adamw", "sconce-adamw"),
                       ("python-clip", "sconce-clip")):
        ratios = [one[slow] / one[fast] for one in all_times]
        print(f"{fast} is {statistics.median(ratios):.2f} times as fast as {slow}"
              f" ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    peer() if sys.argv[1] == "--peer" else main(*sys.argv[1:2])
