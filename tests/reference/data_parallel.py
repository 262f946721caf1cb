"""Python's DataParallel, for comparison in tests/distributed/data_parallel_test.cpp: data_parallel.py WHAT FILE.

Python's DataParallel needs GPUs to scatter and gather, so this script replaces the scatter of one tensor with a scatter
for the CPU. The handling of tuples and lists is Python's own.
"""

import inspect
import sys

import torch
from torch import nn
from torch.nn.parallel import scatter_gather


class ScatterOnCpu:
    @staticmethod
    def apply(devices, sizes, dim, tensor):
        return tensor.chunk(len(devices), dim)


def main(path):
    parameters = list(inspect.signature(nn.DataParallel).parameters.values())[1:]
    scatter_gather.Scatter = ScatterOnCpu
    with open(path, "w") as file:
        print(*(f"{p.name}={p.default}" for p in parameters), file=file)
        for devices in (2, 3, 4, 8):
            for rows in (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 64):
                x = torch.ones(rows, 1)
                inputs, _ = scatter_gather.scatter_kwargs((x, [x], 1), {}, range(devices))
                sizes = [100 * len(x) + len(y) for x, [y], _ in inputs]
                print(devices, rows, ",".join(map(str, sizes)), file=file)


if __name__ == "__main__":
    main(sys.argv[2])
