"""Training steps of a single GPT block, with 256 features and four heads, on `size` sequences of 128 tokens, and of a
GPT-2 with two blocks on one sequence of `size` tokens.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

import updates
from training_steps import forms


class GPT(nn.Module):
    def __init__(self, context, symbols, features, heads, layers, tied=False):
        super().__init__()
        self.tokens = nn.Embedding(symbols, features)
        self.places = nn.Embedding(context, features)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(features, heads, 4 * features, dropout=0, activation=F.gelu,
                                       batch_first=True, norm_first=True) for _ in range(layers))
        self.norm = nn.LayerNorm(features)
        self.tied = tied
        if tied:
            with torch.no_grad():
                self.tokens.weight.mul_(0.02)
        else:
            self.head = nn.Linear(features, symbols)
        self.register_buffer("mask", torch.full((context, context), -math.inf).triu(1), persistent=False)

    def forward(self, x):
        h = self.tokens(x) + self.places.weight
        for block in self.blocks:
            h = block(h, src_mask=self.mask, is_causal=True)
        h = self.norm(h).flatten(0, 1)
        return F.linear(h, self.tokens.weight) if self.tied else self.head(h)


GPT2 = {"symbols": 50257, "features": 768, "heads": 12, "tied": True}


def adamw(parameters, fused):
    return torch.optim.AdamW(parameters, lr=1e-3, fused=fused)


def block(variant, size):
    torch.manual_seed(0)
    tokens, features = 128, 256
    net = nn.TransformerEncoderLayer(features, 4, 4 * features, dropout=0, activation=F.gelu, batch_first=True,
                                     norm_first=True)
    x = torch.randn(size, tokens, features)
    mask = torch.full((tokens, tokens), -math.inf).triu(1)

    def losses_of(forward, x):
        return (forward(x, src_mask=mask, is_causal=True).square().mean(),)

    return forms(variant, net, (x,), losses_of, adamw, updates.AdamW(1e-3, weight_decay=0.01))


def gpt2(variant, size):
    torch.manual_seed(0)
    net = GPT(size, **GPT2, layers=2)
    text = torch.randint(GPT2["symbols"], (1, size + 1))
    return forms(variant, net, (text[:, :-1], text[0, 1:]), lambda forward, x, y: (F.cross_entropy(forward(x), y),), adamw,
                 updates.AdamW(1e-3, weight_decay=0.01))
