"""Batches of what is in memory: sconce against Python and against memcpy.

Runs the program and its Python peer in turn, whole processes with the same number of threads, the
order changing from pair to pair, and prints each one's median time an epoch and the median ratios.
An epoch is 60,000 shuffled images of 28 x 28 in batches of 256, once of uint8 and once of float.
The Python to compare with is the one that runs this script:
    OMP_NUM_THREADS=1 build/setup/torch-2.15.0/bin/python apps/bench/feeding.py \
        build/default/bin/bench-feeding
"""

import statistics
import subprocess
import sys
import time

ROWS, BATCH_SIZE = 60000, 256


def by_index_select(x, y):
    import torch

    order = torch.randperm(ROWS)
    for i in range(0, ROWS, BATCH_SIZE):
        rows = order[i:i + BATCH_SIZE]
        x.index_select(0, rows), y.index_select(0, rows)


def by_loader(x, y):
    from torch.utils.data import DataLoader, TensorDataset

    for _ in DataLoader(TensorDataset(x, y), BATCH_SIZE, shuffle=True):
        pass


def measure(name, call, rounds, skipped):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(name, statistics.median(times[skipped:]))


def peer():
    import torch

    images = torch.randint(256, (ROWS, 28, 28), dtype=torch.uint8)
    target = torch.randint(10, (ROWS,))
    for name, data in ("uint8", images), ("float", images.float()):
        measure(f"python-{name}", lambda: by_index_select(data, target), 14, 3)
        measure(f"dataloader-{name}", lambda: by_loader(data, target), 2, 1)


def times(command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(seconds) for name, seconds in map(str.split, out.splitlines())}


def main(program, runs=16):
    commands = [program], [sys.executable, __file__, "--peer"]
    all_times = []
    for run in range(runs):
        pair = [times(command) for command in (commands if run % 2 == 0 else commands[::-1])]
        all_times.append(pair[0] | pair[1])
    for name in all_times[0]:
        column = [one[name] for one in all_times]
        print(f"{name}: median {1e3 * statistics.median(column):.2f} ms"
              f" ({1e3 * min(column):.2f} to {1e3 * max(column):.2f}, {runs} runs)")
    for kind in ("uint8", "float"):
        for other in ("python", "dataloader", "memcpy"):
            ratios = [one[f"{other}-{kind}"] / one[f"sconce-{kind}"] for one in all_times]
            print(f"sconce-{kind} is {statistics.median(ratios):.2f} times as fast as"
                  f" {other}-{kind} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    peer() if sys.argv[1] == "--peer" else main(*sys.argv[1:2])
