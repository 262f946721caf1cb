"""Writes Python's weight averages for the cases of ema_test.cpp.

    python ema.py averages OUT

OUT becomes a list of cases: their options, the model's values before the first update and at each update, and
the averaged model's state before the first update and after each update.
"""

import sys

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(37, 5, bias=False)
        self.norm = nn.BatchNorm1d(5)
        self.first = self.second = nn.Linear(5, 5)


def values(module):
    return {key: value.clone() for key, value in module.state_dict().items()}


@torch.no_grad()
def change(model):
    for value in model.state_dict().values():
        value.copy_(torch.randn(value.shape) * 9)


torch.manual_seed(7)
cases = []
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    for use_buffers in (False, True):
        for decay in (0.0, 0.3, 0.5, 0.9, 0.999, 1.0):
            model = Net().to(dtype)
            averaged = AveragedModel(
                model, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=use_buffers
            )
            before, after = [values(model)], [values(averaged)]
            for _ in range(6):
                change(model)
                averaged.update_parameters(model)
                before.append(values(model))
                after.append(values(averaged))
            case = {"decay": decay, "use_buffers": use_buffers}
            case |= {"model": [dict(v) for v in before], "averaged": [dict(v) for v in after]}
            cases.append(case)
torch.save(cases, sys.argv[2])
