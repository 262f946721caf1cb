"""Training steps of small models, in which the overhead between kernels matters."""

import torch
from torch import nn

from training_steps import training_steps


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def simple_nn(make_optimizer, rows):
    torch.manual_seed(0)
    model = SimpleNN()
    inputs, labels = torch.randn(rows, 3), torch.arange(rows) % 2
    criterion = nn.CrossEntropyLoss()
    return training_steps(make_optimizer(model.parameters()),
                          lambda: criterion(model(inputs), labels))


def sgd(variant, rows):
    fused = variant == "best"
    return simple_nn(lambda parameters: torch.optim.SGD(parameters, lr=0.01, fused=fused), rows)


def adam(variant, rows):
    fused = variant == "best"
    return simple_nn(lambda parameters: torch.optim.Adam(parameters, lr=0.01, fused=fused), rows)


def amp(variant, size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 10))
    inputs, labels = torch.randn(32, size), torch.arange(32) % 10
    best = variant == "best"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=best)
    scaler = torch.amp.GradScaler("cpu")
    criterion = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=best or None)
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(2):
        step()
    return [step().item()], step
