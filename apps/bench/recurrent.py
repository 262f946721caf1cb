"""Benchmarks a training step of a language model with a vocabulary of 10,000 on 8 sequences of `size` tokens. The
model consists of an embedding and two LSTM layers with 512 units each.
"""

import torch
from torch import nn

from training_steps import forms


class LanguageModel(nn.Module):
    def __init__(self, symbols, features):
        super().__init__()
        self.tokens = nn.Embedding(symbols, features)
        self.lstm = nn.LSTM(features, features, num_layers=2, batch_first=True)
        self.head = nn.Linear(features, symbols)

    def forward(self, x):
        return self.head(self.lstm(self.tokens(x))[0]).flatten(0, 1)


def lstm(variant, size):
    torch.manual_seed(0)
    net = LanguageModel(10_000, 512)
    text = torch.randint(10_000, (8, size + 1))
    return forms(variant, net, (text[:, :-1], text[:, 1:].flatten()),
                 lambda forward, x, y: (nn.functional.cross_entropy(forward(x), y),),
                 lambda parameters, fused: torch.optim.SGD(parameters, lr=0.01, fused=fused))
