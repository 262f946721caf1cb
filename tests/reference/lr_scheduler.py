"""Runs Python's schedulers for the cases of lr_scheduler_test.cpp.

    python lr_scheduler.py curves|fractions|states|cycles OUT

Each line of the file `cases` next to OUT is a case: an optimizer and one or more schedulers for it, such as
`SGD|LinearLR(o)|StepLR(o, 7, 0.5)`. OUT gets a line "case", a line with the numbers before the first step, and
one line after each of 200 steps. A line "raised" ends a case whose scheduler throws.

`fractions` steps by sevenths of an epoch, and every tenth time without an argument.

`states` starts at step 100: new schedulers load the states in the file `ours`, written by C++.
It also writes Python's states at that step to the file `theirs`.

`cycles` does the same with the states of optimizer and scheduler, in cases of two schedulers: a run starts
with the first scheduler, and the second one loads its states.
"""

import pathlib
import sys
import warnings

import torch
from torch.optim.lr_scheduler import *  # used by the cases
from torch.optim.swa_utils import SWALR

STEPS = 200
MIDDLE = 100
warnings.simplefilter("ignore")  # the optimizers make no steps here


def metric(i):
    return (i * 37 % 101 + 400 // (i + 1)) / 16.0 - 3.0


def momentum(group):
    return group["betas"][0] if "betas" in group else group.get("momentum", 0.0)


def make(case):
    kind, *expressions = case.split("|")
    options = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
    groups = [{"params": [torch.zeros(1)], "lr": lr} for lr in (0.1, 0.003)]
    o = getattr(torch.optim, kind)(groups, **options)
    return o, [eval(expression, globals(), {"o": o}) for expression in expressions]


def numbers(o, schedulers):
    values = [group["lr"] for group in o.param_groups]
    values += [momentum(group) for group in o.param_groups]
    return values + [lr for s in schedulers for lr in s.get_last_lr()]


def step(schedulers, i):
    for s in schedulers:
        if isinstance(s, ReduceLROnPlateau):
            s.step(metric(i))
        elif what == "fractions" and i % 10:
            s.step(i / 7)
        else:
            s.step()


def run(case, schedulers, o, steps, out):
    out.write("case\n")
    for i in steps:
        try:
            if i > steps.start:
                step(schedulers, i)
        except (ValueError, ZeroDivisionError):
            out.write("raised\n")
            return
        out.write(" ".join(float(x).hex() for x in numbers(o, schedulers)) + "\n")


def plain(state):
    """Returns the state without the Counter, which does not exist in C++."""
    if isinstance(state, list):
        return [plain(part) for part in state]
    if isinstance(state, dict):
        return {key: plain(part) for key, part in state.items() if key != "milestones"}
    return state


what, path = sys.argv[1], pathlib.Path(sys.argv[2])
cases = (path.parent / "cases").read_text().splitlines()
with open(path, "w") as out:
    if what in ("curves", "fractions"):
        for case in cases:
            try:
                o, schedulers = make(case)
            except ZeroDivisionError:
                out.write("case\nraised\n")
                continue
            run(case, schedulers, o, range(STEPS + 1), out)
    elif what == "cycles":
        ours, theirs = torch.load(path.parent / "ours", weights_only=True), []
        for case, states in zip(cases, ours, strict=True):
            kind, begun, other = case.split("|")
            o, schedulers = make(f"{kind}|{begun}")
            for i in range(1, MIDDLE + 1):
                step(schedulers, i)
            theirs.append([o.state_dict(), schedulers[0].state_dict()])
            o, schedulers = make(f"{kind}|{other}")
            o.load_state_dict(states[0])
            schedulers[0].load_state_dict(states[1])
            run(case, schedulers, o, range(MIDDLE, STEPS + 1), out)
        torch.save(theirs, path.parent / "theirs")
    else:
        ours, theirs = torch.load(path.parent / "ours", weights_only=True), []
        for case, states in zip(cases, ours, strict=True):
            o, schedulers = make(case)
            for i in range(1, MIDDLE + 1):
                step(schedulers, i)
            theirs.append([plain(s.state_dict()) for s in schedulers])
            for s, state in zip(schedulers, states, strict=True):
                expected = plain(s.state_dict())
                derived = {"_is_initial", "_get_lr_called_within_step", "use_beta1"}
                assert expected.keys() - derived == state.keys(), (case, expected, state)
            fresh = make(case)[1]
            for group, old in zip(fresh[0].optimizer.param_groups, o.param_groups):
                group.update({key: old[key] for key in old if key != "params"})
            for s, state in zip(fresh, states):
                s.load_state_dict(state)
            run(case, fresh, fresh[0].optimizer, range(MIDDLE, STEPS + 1), out)
        torch.save(theirs, path.parent / "theirs")
