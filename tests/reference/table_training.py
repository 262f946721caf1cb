"""Writes table_training.txt: a training run in Python on the diabetes table, equal to `sconce-train --data diabetes.csv
--target progression --model linear --epochs 5`. One line per epoch: training loss, training MAE, test MAE, and test R2.

Run with a Python that has torch: python3 tests/reference/table_training.py
"""

import csv
import math
import pathlib

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HERE = pathlib.Path(__file__).parent
EPOCHS = 5

with open(HERE.parent.parent / "apps/train/diabetes/diabetes.csv") as file:
    _, *rows = csv.reader(file)
table = torch.tensor([[float(field) for field in row] for row in rows])
order = torch.randperm(len(table), generator=torch.Generator().manual_seed(0))
is_test = torch.zeros(len(table), dtype=torch.bool)
is_test[order[: round(0.2 * len(table))]] = True
mean, std = table[~is_test].double().mean(0), table[~is_test].double().std(0)
scaled = ((table.double() - mean) / std).float()
train, test = scaled[~is_test], scaled[is_test]

torch.manual_seed(0)
net = nn.Linear(10, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: (1 + math.cos(math.pi * epoch / EPOCHS)) / 2)
dataset = TensorDataset(train[:, :10], train[:, 10:])
sampler = DistributedSampler(dataset, num_replicas=1, rank=0, seed=0)
lines = []
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    squares = errors = 0.0
    for X, y in DataLoader(dataset, batch_size=64, sampler=sampler):
        sgd.zero_grad()
        output = net(X)
        loss = nn.functional.mse_loss(output, y)
        loss.backward()
        sgd.step()
        squares += loss.item() * len(X)
        errors += (output - y).abs().sum().item()
    schedule.step()
    with torch.no_grad():
        differences = net(test[:, :10]) - test[:, 10:]
    target = test[:, 10:].double()
    r2 = 1 - differences.double().square().sum() / (target - target.mean()).square().sum()
    unit = std[10].item()
    values = [squares / len(train), errors / len(train) * unit, differences.abs().mean().item() * unit, r2.item()]
    lines.append(" ".join(f"{value:.9g}" for value in values))
(HERE / "table_training.txt").write_text("\n".join(lines) + "\n")
