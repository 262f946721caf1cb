"""Writes the batches of Python's DataLoader, for tests/data/data_loader_test.cpp, which runs this script with
its own LibTorch.

Run: python3 tests/reference/loader.py batches FILE

Each line: size of the dataset, num_replicas, rank, shuffle, seed, epoch, batch_size, drop_last, and
the rows, with a bar after each batch.
"""

import itertools
import sys

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

SIZES = [1, 10, 23, 64]
SAMPLERS = [(1, 0, 0, 0, 0), (1, 0, 1, 5, 2), (2, 0, 1, 3, 0), (2, 1, 1, 3, 1)]


def main():
    with open(sys.argv[2], "w") as out:
        for size, sampling, batch_size, drop_last in itertools.product(
            SIZES, SAMPLERS, (4, 8), (0, 1)
        ):
            replicas, rank, shuffle, seed, epoch = sampling
            sampler = DistributedSampler(range(size), replicas, rank, bool(shuffle), seed)
            sampler.set_epoch(epoch)
            loader = DataLoader(
                range(size), batch_size, sampler=sampler, drop_last=bool(drop_last)
            )
            words = [size, *sampling, batch_size, drop_last]
            for batch in loader:
                words += [*batch.tolist(), "|"]
            print(*words, file=out)


main()
