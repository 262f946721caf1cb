"""Benchmarks a recommender training step on 512 pairs. The recommender consists of two towers over embeddings of
`size` users and `size` items, with sparse gradients.
"""

import torch
from torch import nn

from training_steps import calls_of


class Tower(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = nn.Embedding(rows, 32, sparse=True)
        self.hidden = nn.Linear(32, 64)
        self.output = nn.Linear(64, 32)

    def forward(self, ids):
        return self.output(torch.relu(self.hidden(self.rows(ids))))


def two_towers(variant, size):
    torch.manual_seed(0)
    users, items = Tower(size), Tower(size)
    sparse = torch.optim.SGD([users.rows.weight, items.rows.weight], lr=0.1)
    dense = torch.optim.Adam([p for tower in (users, items) for p in (*tower.hidden.parameters(), *tower.output.parameters())],
                             lr=1e-3, fused=variant == "best")
    user_ids, item_ids, liked = torch.randint(size, (512,)), torch.randint(size, (512,)), torch.arange(512) % 2

    def step():
        sparse.zero_grad()
        dense.zero_grad()
        scores = (users(user_ids) * items(item_ids)).sum(1)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, liked.to(torch.float))
        loss.backward()
        sparse.step()
        dense.step()
        return loss

    return calls_of(step)
