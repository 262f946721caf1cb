"""Runs Python's optimizers and schedulers through the random events of optim/random_runs.cpp.

Run: python3 tests/reference/optim_random.py OUT

Each line of the file `cases` next to OUT is a run: "name|optimizer|dtype|arguments|schedule|events", with a
semicolon after each event. After a line "= name", OUT gets the output of optim.py at the end of a training run.
At `to_python N`, the run continues from name.N.pt, which C++ has written. At `to_cpp N`, it saves
name.N.python.pt.
"""

import pathlib
import sys
import warnings

import torch
from torch.optim.lr_scheduler import *  # used by the cases

from optim import load, numbers, write_results

warnings.simplefilter("ignore")  # a schedule may step before its optimizer
SIZES = [(3, 5), (67,), (), (4, 4), (2, 3, 4), (1,), (40, 33)]


class Run:
    def __init__(self, kind, dtype, arguments, schedule):
        self.kind, self.dtype = getattr(torch.optim, kind), getattr(torch, dtype)
        self.arguments, self.expression = eval(f"dict({arguments})"), schedule
        self.groups, self.frozen = [[], []], set()
        for i in range(4):
            self.groups[i % 2].append(numbers(1000 + i, SIZES[i], self.dtype).requires_grad_())
        self.make()

    def make(self):
        self.optimizer = self.kind([{"params": list(group)} for group in self.groups],
                                   **self.arguments)
        self.schedule = eval(self.expression, globals(), {"o": self.optimizer})

    def parameters(self):
        return [p for group in self.groups for p in group]

    def states(self):
        schedule = {} if self.schedule is None else self.schedule.state_dict()
        return {"optimizer": self.optimizer.state_dict(), "schedule": schedule}

    def load(self, states):
        self.make()
        load(self.optimizer, states["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(states["schedule"])

    # The fused kernels require parameters, gradients, and states of the same layout.
    def match_layouts(self):
        for p, state in self.optimizer.state.items():
            for key, tensor in state.items():
                if key not in ("step", "mu_product") and tensor is not None:
                    state[key] = torch.empty_like(p).copy_(tensor)
        for p in self.parameters():
            if p.grad is not None:
                p.grad = torch.empty_like(p).copy_(p.grad)

    def step(self, seed):
        for i, p in enumerate(self.parameters()):
            p.grad = None if i in self.frozen else numbers(seed + i, p.shape, self.dtype)
        if self.arguments.get("fused"):
            with torch.no_grad():
                self.match_layouts()
        for params in self.stepped_together():
            grads = {p: p.grad for p in self.parameters()}
            for p in self.parameters():
                p.grad = grads[p] if p in params else None
            self.optimizer.step()
            for p, grad in grads.items():
                p.grad = grad

    # Python's fused SGD fails if only some of a group's parameters have a momentum buffer.
    def stepped_together(self):
        with_momentum = {p for p, state in self.optimizer.state.items() if "momentum_buffer" in state}
        if not self.arguments.get("fused") or self.kind is not torch.optim.SGD:
            return [set(self.parameters())]
        return [with_momentum, set(self.parameters()) - with_momentum]

    def resize(self, i, size, seed):
        p = self.parameters()[i]
        p.grad = None
        p.data = numbers(seed, SIZES[size], self.dtype)
        self.optimizer.state.pop(p, None)

    def turn(self, i):
        p = self.parameters()[i]
        p.grad = None
        if p.dim() > 1:
            p.data = p.data.transpose(0, -1).contiguous().transpose(0, -1)

    def add(self, size, seed, lr):
        p = numbers(seed, SIZES[size], self.dtype).requires_grad_()
        self.groups.append([p])
        self.optimizer.add_param_group({"params": [p], "lr": lr})

    def set_lr(self, lr):
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def take_over(self, file):
        saved = torch.load(file, weights_only=True)
        for p, value in zip(self.parameters(), saved["parameters"], strict=True):
            p.grad = None
            p.data = value
        self.load(saved)

    def leave(self, file):
        states = self.states()
        torch.save({"parameters": [p.detach() for p in self.parameters()], **states}, file)
        self.load(states)


def main(out):
    folder = out.parent
    with open(out, "w") as results:
        for line in (folder / "cases").read_text().splitlines():
            name, kind, dtype, arguments, schedule, events = line.split("|")
            run = Run(kind, dtype, arguments, schedule)
            for event in events.split(";")[:-1]:
                verb, *words = event.split()
                values = [float(word) if "." in word else int(word) for word in words]
                if verb == "schedule":
                    run.schedule.step()
                elif verb == "freeze":
                    run.frozen.add(*values)
                elif verb == "thaw":
                    run.frozen.discard(*values)
                elif verb == "save":
                    run.load(run.states())
                elif verb == "to_python":
                    run.take_over(folder / f"{name}.{values[0]}.pt")
                elif verb == "to_cpp":
                    run.leave(folder / f"{name}.{values[0]}.python.pt")
                else:
                    getattr(run, verb)(*values)
            write_results(name, run.parameters(), run.optimizer.state_dict(), results)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[-1]))
