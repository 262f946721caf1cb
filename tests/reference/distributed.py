"""Trains with Python's DistributedDataParallel over Gloo, for tests/distributed/distributed_data_parallel_test.cpp,
which runs this script with its own LibTorch and trains the same in C++ (tests/distributed/training.hpp).

Run: python3 tests/reference/distributed.py CASES-SIZES FILE     (such as mlp,cnn-23 FILE)

For each digit of SIZES, that many processes train each case. FILE.CASE.SIZE then has two lines with the bytes of
each bucket, first as built and then as rebuilt, followed by the bytes of all parameters and buffers.
"""

import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Branches(nn.Module):
    """Uses one or neither of two branches, as the caller selects. The last layer is never used."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 30)
        self.left = nn.Linear(30, 30)
        self.right = nn.Linear(30, 30)
        self.last = nn.Linear(30, 10)
        self.never = nn.Linear(30, 10)

    def forward(self, x, branch):
        x = torch.relu(self.first(x))
        if branch == 1:
            x = x + self.left(x)
        if branch == 2:
            x = x + self.right(x)
        return self.last(x)


class TwoHeads(nn.Module):
    """Has a head that does not contribute to the loss."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 30)
        self.used = nn.Linear(30, 10)
        self.unused = nn.Linear(30, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.used(x), self.unused(x)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 20, sparse=True)
        self.last = nn.Linear(20, 10)

    def forward(self, x):
        return self.last(self.embedding((x.abs() * 10).long().clamp(max=49)).mean(1))


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 30)
        self.middle = nn.Linear(30, 30)
        self.last = nn.Linear(30, 10)

    def hidden(self, x):
        return F.dropout(torch.relu(self.first(x)), 0.3, self.training)

    def forward(self, x):
        x = checkpoint(self.hidden, x, use_reentrant=False)
        return self.last(torch.relu(checkpoint(self.middle, x, use_reentrant=False)))


def mlp(width):
    return nn.Sequential(
        nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
    )  # fmt: skip


MODELS = {
    "checkpointed": Checkpointed,
    "cnn": cnn,
    "outputs": TwoHeads,
    "sparse": Words,
    "static": Branches,
    "unused": Branches,
    "wide": lambda: mlp(700),
}
OPTIONS = {
    "outputs": {"find_unused_parameters": True},
    "small": {"bucket_cap_mb": 0.002},
    "static": {"static_graph": True},
    "unused": {"find_unused_parameters": True, "bucket_cap_mb": 0.002},
}


def forward(case, model, x, step, rank):
    if case == "unused":
        return model(x, (step + rank) % 4)
    if case == "static":
        return model(x, 1)
    if case == "outputs":
        return model(x)[0]
    return model(x)


def batch(case, step, part, rank):
    torch.manual_seed(1000 * step + 100 * part + rank)
    x = torch.randn(8, 1, 10, 10) if case == "cnn" else torch.randn(8, 20)
    return x, torch.randint(0, 10, (8,))


def train(case, rank, ddp):
    if case == "amp":
        optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01, fused=True)
    else:
        momentum = 0 if case == "sparse" else 0.9
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=momentum)
    scaler = torch.amp.GradScaler("cpu", enabled=case == "amp", init_scale=2.0**20, growth_interval=5)
    parts = 3 if case == "no_sync" else 1
    for step in range(3 if case == "wide" else 20):
        for part in range(parts):
            x, y = batch(case, step, part, rank)
            if case == "amp" and step == 7 and rank == 1:
                x = x * float("inf")
            ddp.require_backward_grad_sync = part == parts - 1
            with torch.autocast("cpu", enabled=case == "amp"):
                loss = F.cross_entropy(forward(case, ddp, x, step, rank), y)
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def run(cases, rank, size, meeting, file):
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=size)
    for case in cases.split(","):
        run_case(case, rank, f"{file}.{case}.{size}")
    dist.destroy_process_group()


def run_case(case, rank, file):
    torch.manual_seed(rank)
    model = MODELS.get(case, lambda: mlp(30))()
    ddp = DistributedDataParallel(model, **OPTIONS.get(case, {}))
    if case in ("bf16", "fp16"):
        hook = getattr(default_hooks, f"{case}_compress_hook")
        # DistributedDataParallel rejects the bf16 hook under its own name if PyTorch was built without CUDA.
        ddp.register_comm_hook(None, lambda state, bucket: hook(state, bucket))
    buckets = ddp._get_ddp_logging_data()["bucket_sizes"]
    train(case, rank, ddp)
    rebuilt = ddp._get_ddp_logging_data().get("rebuilt_bucket_sizes", buckets)
    if rank == 0:
        with open(file, "wb") as out:
            for sizes in (buckets, rebuilt):
                out.write(" ".join(sizes.replace(",", " ").split()).encode() + b"\n")
            for tensor in [*model.parameters(), *model.buffers()]:
                out.write(tensor.detach().numpy().tobytes())


def main():
    cases, sizes = sys.argv[1].split("-")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, sizes):
            ranks = [
                fork.Process(target=run, args=(cases, rank, size, f"{folder}/{size}", sys.argv[2]))
                for rank in range(size)
            ]
            for process in ranks:
                process.start()
            for process in ranks:
                process.join()
            if any(process.exitcode for process in ranks):
                sys.exit(1)


if __name__ == "__main__":
    main()
