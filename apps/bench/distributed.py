"""A step under DistributedDataParallel: sconce against Python, and a group of one against none.

Starts the program and its Python peer in turn, each as two ranks with Gloo on this machine and one
thread a rank, and prints the median times and ratios. The Python to compare with is the one that
runs this script:
    build/setup/torch-2.15.0/bin/python apps/bench/distributed.py build/default/bin/bench-distributed
"""

import os
import socket
import statistics
import subprocess
import sys
import time


def peer():
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("gloo")
    layers = nn.Sequential(*(nn.Linear(64, 64) for _ in range(50)))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    model = nn.parallel.DistributedDataParallel(layers)
    x = torch.randn(16, 64)
    times = []
    for _ in range(320):
        start = time.perf_counter()
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print("python-ddp", statistics.median(times[20:]))
    dist.destroy_process_group()


def run(command, size):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = []
    for rank in range(size):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        ranks.append(subprocess.Popen(command, env=os.environ | variables, text=True,
                                      stdout=subprocess.PIPE))
    out = "".join(process.communicate()[0] for process in ranks)
    if any(process.returncode for process in ranks):
        sys.exit("a rank failed")
    return {name: float(seconds) for name, seconds in map(str.split, out.splitlines())}


def show(pairs, above, below):
    for name in (above, below):
        column = [1e3 * pair[name] for pair in pairs]
        print(f"{name}: median {statistics.median(column):.3f} ms"
              f" ({min(column):.3f} to {max(column):.3f}, {len(pairs)} runs)")
    ratios = [pair[above] / pair[below] for pair in pairs]
    print(f"{above} takes {statistics.median(ratios):.3f} of {below}"
          f" ({min(ratios):.3f} to {max(ratios):.3f})")


def main(program, runs=9):
    peer_command = [sys.executable, __file__, "--peer"]
    show([run([program], 2) | run(peer_command, 2) for _ in range(runs)], "sconce-ddp", "python-ddp")
    print("a group of one:")
    show([run([program], 1) for _ in range(runs)], "sconce-ddp", "bare")


if __name__ == "__main__":
    peer() if sys.argv[1] == "--peer" else main(*sys.argv[1:2])
