"""Benchmarks a training step of 50 linear layers with 64 units under DistributedDataParallel, on `size` Gloo ranks.

Rank 0 is the worker process. The worker forks the other ranks, each of which runs a step whenever rank 0 does.
"""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn

from training_steps import training_steps


def steps_of_rank(variant, meeting, rank, ranks):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(64, 64) for _ in range(50)))
    best = variant == "best"
    model = nn.parallel.DistributedDataParallel(layers, gradient_as_bucket_view=best)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01, fused=best)
    x = torch.randn(16, 64)
    return training_steps(optimizer, lambda: model(x).square().mean())


def follow(variant, meeting, rank, ranks):
    """Keeps stepping until rank 0 exits, which makes the gradient reduction throw."""
    try:
        _, step = steps_of_rank(variant, meeting, rank, ranks)
        while True:
            step()
    finally:
        os._exit(0)


def step(variant, ranks):
    meeting = os.path.join(tempfile.gettempdir(), f"sconce-bench-{os.getpid()}")
    for rank in range(1, ranks):
        if os.fork() == 0:
            follow(variant, meeting, rank, ranks)
    made = steps_of_rank(variant, meeting, 0, ranks)
    if os.path.exists(meeting):
        os.remove(meeting)
    return made
