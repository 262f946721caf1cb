"""Benchmarks the training steps of small models, where the overhead between kernels matters."""

import torch
from torch import nn

import updates
from training_steps import WHOLE_STEP, calls_of, compiled_model, compiled_step, forms, save_numbers


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def simple_nn(variant, rows, optimizer, update):
    torch.manual_seed(0)
    model = SimpleNN()
    criterion = nn.CrossEntropyLoss()
    return forms(variant, model, (torch.randn(rows, 3), torch.arange(rows) % 2),
                 lambda forward, x, y: (criterion(forward(x), y),),
                 lambda parameters, fused: optimizer(parameters, lr=0.01, fused=fused), update)


def sgd(variant, rows):
    return simple_nn(variant, rows, torch.optim.SGD, updates.SGD(0.01))


def adam(variant, rows):
    return simple_nn(variant, rows, torch.optim.Adam, updates.AdamW(0.01, weight_decay=0))


def amp(variant, size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 10))
    batch = torch.randn(32, size), torch.arange(32) % 10
    criterion = nn.CrossEntropyLoss()

    def losses_of(forward, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (criterion(forward(x), y),)

    if variant == "numbers":
        return save_numbers(model, batch)
    if variant in WHOLE_STEP:
        whole = compiled_step(variant, model, losses_of, updates.Scaled(updates.AdamW(1e-3, weight_decay=0.01), max_norm=1.0))
        return calls_of(lambda: whole(*batch)[0])
    fast = variant != "default"
    forward = compiled_model(variant, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fast)
    scaler = torch.amp.GradScaler("cpu")

    def step():
        optimizer.zero_grad()
        loss, = losses_of(forward, *batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=fast or None)
        scaler.step(optimizer)
        scaler.update()
        return loss

    return calls_of(step)


def layers(variant, size):
    """`size` consecutive linear layers with 64 units each."""
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(size)))
    return forms(variant, net, (torch.randn(16, 64),), lambda forward, x: (forward(x).square().mean(),),
                 lambda parameters, fused: torch.optim.SGD(parameters, lr=0.01, fused=fused), updates.SGD(0.01))


def table(variant, rows):
    """Trains the network from docs/ship_a_program.md on one batch of the table from that page."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
    return forms(variant, net, (torch.randn(rows, 5), torch.randn(rows, 1)),
                 lambda forward, x, y: (nn.functional.mse_loss(forward(x), y),),
                 lambda parameters, fused: torch.optim.AdamW(parameters, lr=0.01, fused=fused),
                 updates.AdamW(0.01, weight_decay=0.01))
