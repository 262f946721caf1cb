import argparse
import math
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DistributedSampler


class GPT(nn.Module):
    def __init__(self, symbols, o):
        super().__init__()
        self.tokens = nn.Embedding(symbols, o.width)
        self.places = nn.Embedding(o.context, o.width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, 0, 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(o.width, o.heads, 4 * o.width, o.dropout, F.gelu, batch_first=True, norm_first=True)
            for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.width)
        self.head = nn.Linear(o.width, symbols)

    def forward(self, x):  # (N, L) to (N, symbols, L)
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h, src_mask=mask, is_causal=True)
        return self.head(self.norm(h).flatten(0, 1)).unflatten(0, x.shape).transpose(1, 2)


def read(path):
    path = pathlib.Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.is_symlink())
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)


def windows(text, o):  # both (N, L)
    return text[:-1].unfold(0, o.context, o.context), text[1:].unfold(0, o.context, o.context)


def batches(data, o, rank, ranks, epoch=None):
    sampler = DistributedSampler(data[0], ranks, rank, shuffle=epoch is not None)
    sampler.set_epoch(epoch or 0)
    for rows in torch.tensor(list(sampler)).split(o.batch):
        yield data[0][rows], data[1][rows]


@torch.no_grad()
def validate(net, data, o, rank, ranks):
    net.eval()
    total = torch.zeros(2, dtype=torch.float64)
    for x, y in batches(data, o, rank, ranks):
        with torch.autocast("cpu", enabled=o.precision == "bf16"):
            loss = F.cross_entropy(net(x), y)
        total += torch.stack([loss.double() * len(x), torch.tensor(len(x), dtype=torch.float64)])
    if ranks > 1:
        dist.all_reduce(total)
    net.train()
    return (total[0] / total[1]).item()


@torch.no_grad()
def write(net, symbols, o):
    net.eval()
    text = torch.zeros(1, 1, dtype=torch.int64)
    for _ in range(o.sample):
        last = net(text[:, -o.context:])[:, :, -1]
        text = torch.cat([text, torch.multinomial(last.softmax(1), 1)], 1)
    sys.stdout.flush()
    sys.stdout.buffer.write(bytes(symbols[text[0]].tolist()) + b"\n")


def train(o):
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        dist.init_process_group("gloo")
    symbols, ids = torch.unique(read(o.text), return_inverse=True)
    split = len(ids) * 9 // 10
    training, validation = windows(ids[:split], o), windows(ids[split:], o)
    torch.manual_seed(0)
    net = GPT(len(symbols), o)
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=o.lr, fused=True)
    rows = math.ceil(len(training[0]) / ranks)
    count = math.ceil(rows / o.batch)
    steps = o.epochs * math.ceil(count / o.accumulate)
    warm_up = steps / 10

    def factor(step):
        if step < warm_up:
            return (step + 1) / (warm_up + 1)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(adamw, factor)
    model = nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
    torch.manual_seed(rank)
    for epoch in range(o.epochs):
        for batch, (x, y) in enumerate(batches(training, o, rank, ranks, epoch)):
            batches_in_step = min(o.accumulate, count - batch // o.accumulate * o.accumulate)
            is_last = (batch + 1) % o.accumulate == 0 or batch + 1 == count
            if batch % o.accumulate == 0:
                adamw.zero_grad()
            if ranks > 1:
                model.require_backward_grad_sync = is_last
            with torch.autocast("cpu", enabled=o.precision == "bf16"):
                loss = F.cross_entropy(model(x), y)
            (loss / batches_in_step).backward()
            if is_last:
                nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
                adamw.step()
                scheduler.step()
                if rank == 0:
                    print(f"loss {loss.item():.6f}")
        value = validate(net, validation, o, rank, ranks)
        if rank == 0:
            print(f"epoch {epoch + 1}: validation loss {value:.6f}")
    torch.manual_seed(0)
    if rank == 0:
        write(net, symbols, o)
    if ranks > 1:
        dist.destroy_process_group()


parser = argparse.ArgumentParser()
parser.add_argument("--text", default="/usr/share/common-licenses")
parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
for name, default in {"epochs": 14, "accumulate": 1, "batch": 32, "context": 64, "width": 128, "layers": 4, "heads": 4,
                      "sample": 200, "lr": 2e-3, "dropout": 0.1}.items():
    parser.add_argument("--" + name, type=type(default), default=default)
torch.backends.mha.set_fastpath_enabled(False)  # its kernel rounds differently
train(parser.parse_args())
