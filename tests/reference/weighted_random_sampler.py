"""Writes the rows that Python's WeightedRandomSampler draws, for
tests/data/weighted_random_sampler_test.cpp, which runs this script with its own LibTorch.

Run: python3 tests/reference/weighted_random_sampler.py indices FILE

Each line: number of weights, num_samples, replacement, seed, epoch, and the indices.
"""

import itertools
import sys

import torch
from torch.utils.data import WeightedRandomSampler

CASES = [(2, 1, 1), (2, 1, 0), (10, 25, 1), (10, 9, 0), (97, 300, 1), (97, 40, 0)]
SEEDS = [(0, 0), (0, 1), (42, 3), (2**32 + 5, 2), (2**64 - 2, 1)]


def main():
    with open(sys.argv[2], "w") as out:
        for (rows, num_samples, replacement), (seed, epoch) in itertools.product(CASES, SEEDS):
            weights = torch.arange(rows).mul(7).remainder(10)
            generator = torch.Generator().manual_seed(seed + epoch)
            sampler = WeightedRandomSampler(weights, num_samples, bool(replacement), generator)
            assert len(sampler) == num_samples
            print(rows, num_samples, replacement, seed, epoch, *sampler, file=out)


main()
