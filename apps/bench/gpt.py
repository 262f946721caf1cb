"""A step of one block of a GPT, of 256 features and four heads, on `size` sequences of 128 tokens."""

import math

import torch
from torch import nn
from torch.nn import functional as F

import updates
from training_steps import forms


def block(variant, size):
    torch.manual_seed(0)
    tokens, features = 128, 256
    net = nn.TransformerEncoderLayer(features, 4, 4 * features, dropout=0, activation=F.gelu, batch_first=True,
                                     norm_first=True)
    x = torch.randn(size, tokens, features)
    mask = torch.full((tokens, tokens), -math.inf).triu(1)

    def losses_of(forward, x):
        return (forward(x, src_mask=mask, is_causal=True).square().mean(),)

    return forms(variant, net, (x,), losses_of,
                 lambda parameters, fused: torch.optim.AdamW(parameters, lr=1e-3, fused=fused),
                 updates.AdamW(1e-3, weight_decay=0.01))
