"""Writes the indices of Python's DistributedSampler, for tests/data/distributed_sampler_test.cpp, which runs
this script with its own LibTorch.

Run: python3 tests/reference/distributed_sampler.py indices FILE

Each line: size of the dataset, num_replicas, rank, shuffle, seed, drop_last, epoch, length, and the
indices.
"""

import itertools
import sys

from torch.utils.data.distributed import DistributedSampler

SIZES = [1, 2, 5, 10, 97, 100]
REPLICAS = [1, 2, 3, 7]
ORDERS = [(0, 0, 0), (1, 0, 0), (1, 42, 3)]


def main():
    with open(sys.argv[2], "w") as out:
        for size, replicas, order, drop_last in itertools.product(SIZES, REPLICAS, ORDERS, (0, 1)):
            shuffle, seed, epoch = order
            for rank in range(replicas):
                sampler = DistributedSampler(
                    range(size), replicas, rank, bool(shuffle), seed, bool(drop_last)
                )
                sampler.set_epoch(epoch)
                words = [size, replicas, rank, shuffle, seed, drop_last, epoch, len(sampler)]
                print(*words, *sampler, file=out)


main()
