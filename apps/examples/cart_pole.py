import math
import sys
import time

import torch
from torch import nn


class CartPole:
    def __init__(self):
        self.place, self.speed, self.angle, self.spin = (0.1 * torch.rand(4) - 0.05).tolist()

    def observe(self):
        return torch.tensor([self.place, self.speed, self.angle, self.spin])

    def step(self, right):
        force, sine, cosine = 10 if right else -10, math.sin(self.angle), math.cos(self.angle)
        push = (force + 0.05 * self.spin * self.spin * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (2 / 3 - 0.05 * cosine * cosine / 1.1)
        self.place += 0.02 * self.speed
        self.speed += 0.02 * (push - 0.05 * turn * cosine / 1.1)
        self.angle += 0.02 * self.spin
        self.spin += 0.02 * turn
        return abs(self.place) < 2.4 and abs(self.angle) < 0.21


def returns_of(steps):
    returns, later = [0.0] * steps, 0.0
    for i in reversed(range(steps)):
        later = returns[i] = 1 + 0.99 * later
    returns = torch.tensor(returns)
    return (returns - returns.mean()) / (returns.std() + 1e-6)


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
adam = torch.optim.Adam(policy.parameters(), lr=0.01, fused=True)
begin = time.perf_counter()
steps = steps_before = 0
for episode in range(1, 201):
    world, is_up = CartPole(), True
    observations, actions = [], []
    with torch.no_grad():
        while is_up and len(actions) < 200:
            observations.append(world.observe())
            actions.append(policy(observations[-1]).sigmoid().bernoulli().item())
            is_up = world.step(actions[-1] == 1)

    logits = policy(torch.stack(observations)).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(actions), returns_of(len(actions)))
    adam.zero_grad()
    loss.backward()
    adam.step()
    steps += len(actions)
    if episode % 50 == 0:
        print(f"episodes {episode - 49} to {episode}: {(steps - steps_before) / 50:.1f} steps on average")
        steps_before = steps
print(f"{steps / (time.perf_counter() - begin):.0f} steps/s", file=sys.stderr)
