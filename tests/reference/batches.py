"""Writes batches.txt: DataLoader's defaults, and the orders of DistributedSampler with one replica.

Run with a Python that has torch: python3 tests/reference/batches.py
"""

import inspect
import pathlib

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

ORDERS = [
    (1, 0, 0),
    (2, 0, 0),
    (5, 0, 0),
    (10, 0, 0),
    (10, 0, 1),
    (10, 0, 2),
    (10, 1, 0),
    (10, 42, 3),
    (97, 7, 12),
    (257, 2**32 + 5, 2),
    (10, 2**64 - 2, 1),
]


def default(function, name):
    return int(inspect.signature(function).parameters[name].default or 0)


def order(n, seed, epoch):
    sampler = DistributedSampler(range(n), num_replicas=1, rank=0, shuffle=True, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


lines = ["default " + f"{name} {default(DataLoader.__init__, name)}"
         for name in ("batch_size", "shuffle", "drop_last")]
lines.append(f"default seed {default(DistributedSampler.__init__, 'seed')}")
for n, seed, epoch in ORDERS:
    lines.append(" ".join(map(str, ["order", n, seed, epoch, *order(n, seed, epoch)])))
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
