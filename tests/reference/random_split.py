"""Writes the results of Python's random_split, for tests/data/random_split_test.cpp, which runs this script
with its own LibTorch.

Run: python3 tests/reference/random_split.py parts FILE

Each line: size, seed, "lengths" or "fractions", their number, the numbers, the indices with a bar
after each part, and the number that the generator draws afterward.
"""

import itertools
import sys

import torch
from torch.utils.data import random_split

SPLITS = [
    (10, [7, 3]),
    (10, [10]),
    (97, [1, 90, 6]),
    (10, [0.8, 0.2]),
    (97, [0.5, 0.3, 0.2]),
    (7, [1 / 3, 1 / 3, 1 / 3]),
    (100, [0.29, 0.57, 0.14]),
    (1000, [0.1] * 10),
]
SEEDS = [0, 42, 2**32 + 5, 2**63]


def main():
    with open(sys.argv[2], "w") as out:
        for (size, lengths), seed in itertools.product(SPLITS, SEEDS):
            generator = torch.Generator().manual_seed(seed)
            parts = random_split(range(size), lengths, generator)
            kind = "fractions" if isinstance(lengths[0], float) else "lengths"
            words = [size, seed, kind, len(lengths), *map(repr, lengths)]
            for part in parts:
                words += [*part.indices, "|"]
            words.append(torch.randint(1000, (1,), generator=generator).item())
            print(*words, file=out)


main()
