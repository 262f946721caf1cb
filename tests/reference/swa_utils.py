"""Averages the weights of models with Python's AveragedModel, for the random cases of optim/swa_utils_test.cpp.

    python swa_utils.py averages|resume OUT

The file `cases` next to OUT contains a line with the number of cases. Both languages draw a case from its number.
For each case, `averages` writes the model's values before the first update and at each update, and the averaged
model's state before the first update, after each update, and after update_bn, whose batches it writes too.
For each case, `resume` loads the state that C++ had after half of the updates from the file `ours`, makes the
other updates, and compares: OUT contains a line "equal" for each case.
"""

import pathlib
import sys

import torch
from torch import nn
from torch.optim.swa_utils import (AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, get_swa_avg_fn,
                                   get_swa_multi_avg_fn, update_bn)

UPDATES = 6
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 5, bias=False)
        self.norm = nn.BatchNorm1d(5)
        self.first = self.second = nn.Linear(5, 5)
        self.last = nn.BatchNorm1d(5, momentum=0.3)

    def forward(self, x):
        return self.last(self.second(self.first(self.norm(self.fc(x)))))


def averaged_model(number, model):
    kind, use_buffers = number % 5, bool(number // 5 % 2)
    decay = [0.0, 0.3, 0.9, 0.999, 1.0][number // 10 % 5]
    functions = [{}, {"avg_fn": get_swa_avg_fn()}, {"avg_fn": get_ema_avg_fn(decay)},
                 {"multi_avg_fn": get_ema_multi_avg_fn(decay)}, {"multi_avg_fn": get_swa_multi_avg_fn()}]
    # Python's mean of many tensors fails for integers such as num_batches_tracked.
    return AveragedModel(model, use_buffers=use_buffers and kind != 4, **functions[kind])


def values(module):
    return {key: value.clone() for key, value in module.state_dict().items()}


@torch.no_grad()
def change(model):
    for value in model.state_dict().values():
        value.copy_(torch.randn(value.shape) * 9)


def run(number, resumed=None):
    torch.manual_seed(number)
    model = Net().to(DTYPES[number % 3])
    averaged = averaged_model(number, model)
    before, after = [values(model)], [values(averaged)]
    for i in range(UPDATES):
        change(model)
        if resumed is not None and i == UPDATES // 2:
            averaged.load_state_dict(resumed)
        if resumed is None or i >= UPDATES // 2:
            averaged.update_parameters(model)
        before.append(values(model))
        after.append(values(averaged))
    batches = [torch.randn(4 + i, 7, dtype=DTYPES[number % 3]) for i in range(3)]
    averaged.train(bool(number % 2))
    update_bn([(x, None) for x in batches], averaged)
    assert averaged.training == bool(number % 2)
    return {"model": before, "averaged": after, "batches": batches, "means": values(averaged)}


what, out = sys.argv[1], pathlib.Path(sys.argv[2])
count = int((out.parent / "cases").read_text())
if what == "averages":
    torch.save([run(number) for number in range(count)], out)
else:
    ours = torch.load(out.parent / "ours", weights_only=True)
    with open(out, "w") as lines:
        for number, state in enumerate(ours):
            whole, resumed = run(number)["averaged"][-1], run(number, state)["averaged"][-1]
            same = whole.keys() == resumed.keys() and all(whole[key].equal(resumed[key]) for key in whole)
            lines.write("equal\n" if same else f"other values in case {number}\n")
