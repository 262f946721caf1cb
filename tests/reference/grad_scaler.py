"""Writes 300 generated scripts of calls to Python's GradScaler, with the result of each call, for
tests/amp/grad_scaler_test.cpp, which runs this script with its own LibTorch.

Run: python3 tests/reference/grad_scaler.py scripts|defaults FILE

scripts: after each line "> COMMAND" a line "= NOTE SCALER" and, if the command concerns an optimizer,
a line ". NAME BITS" per tensor, where BITS has eight hex digits per element, its bits as float32.
A momentum buffer of zeros is left out.
A script begins with the command "scaler". Each command "optimizer" creates an optimizer. Optimizers are
numbered from 0. At the end, lines "# KEY COUNT" state facts about the scripts.
defaults: a line "NAME VALUE" for each argument of torch.amp.GradScaler.
"""

import collections
import inspect
import random
import struct
import sys
import warnings

import torch
from torch.nn import functional as F

INDEX = [0, 1, 0]  # the rows of a sparse gradient's entries; row 0 occurs twice
# Whether Python passes the scale to the fused kernels of Adagrad, as in 2.15 but not in 2.11.
SCALED_ADAGRAD = hasattr(torch.optim.Adagrad([torch.zeros(1)], fused=True), "_step_supports_amp_scaling")


def bits(value):
    return struct.pack(">d", value).hex()


def dump(tensor):
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    values = dense.float().reshape(-1).tolist()
    return "".join(struct.pack(">f", value).hex() for value in values)


def make_optimizer(name, mode, lr, momentum, dampening, decay, nesterov, amsgrad, maximize, params):
    options = {"lr": lr, "weight_decay": decay, "maximize": maximize}
    options |= {"fused": True} if mode == "fused" else {"foreach": mode == "foreach"}
    if name == "SGD":
        options |= {"momentum": momentum, "dampening": dampening, "nesterov": nesterov}
    elif name == "RMSprop":
        options |= {"momentum": momentum, "centered": amsgrad}
    elif name == "Adagrad":
        options["lr_decay"] = dampening
    else:
        options["decoupled_weight_decay" if name == "NAdam" else "amsgrad"] = amsgrad
    return getattr(torch.optim, name)(params, **options)


class Optimizer:
    """An optimizer, its parameters, and the way they receive gradients."""

    def __init__(self, name, mode, *numbers):
        *options, dtype, sparse = numbers[:9]
        sizes = [int(size) for size in numbers[9:]]
        self.sparse = sparse == "1"
        self.params = [(torch.arange(n, dtype=torch.float32) / 4 - 1).reshape(n, 1)
                       .to(getattr(torch, dtype)).requires_grad_() for n in sizes]
        lr, momentum, dampening, decay = (float(x) for x in options[:4])
        self.of_python = make_optimizer(name, mode, lr, momentum, dampening, decay,
                                        *(x == "1" for x in options[4:]), self.params)
        self.keeps_momentum = name == "SGD" and mode == "fused" and momentum != 0
        self.skipped_first = False
        if name == "SGD" and mode == "foreach":
            self.of_python.register_step_pre_hook(self.copy_gradients)
            self.of_python.register_step_post_hook(self.restore_gradients)

    def copy_gradients(self, *_):
        self.copies = [None if p.grad is None else p.grad.clone() for p in self.params]

    def restore_gradients(self, *_):
        """Python's foreach kernels write Nesterov's sums into the gradients, but sconce's kernels do not."""
        for p, copy in zip(self.params, self.copies):
            p.grad = copy

    def losses(self, numbers):
        losses, start = [], 0
        for p in self.params:
            x = F.embedding(torch.tensor(INDEX), p, sparse=True) if self.sparse else p
            grad = torch.tensor([float(g) for g in numbers[start:start + len(x)]]).to(p)
            losses.append((x * grad.reshape(-1, 1)).sum())
            start += len(x)
        return losses

    def has_no_state(self):
        return not any(state for state in self.of_python.state.values())

    def tensors(self):
        for i, p in enumerate(self.params):
            yield f"param{i}", p
            if p.grad is not None:
                yield f"grad{i}", p.grad
            for key, value in sorted(self.of_python.state.get(p, {}).items()):
                if value is not None and (key != "momentum_buffer" or value.to_dense().any()):
                    yield f"{key}{i}", value

    def dumps(self):
        """Dumps everything that a step changes. State that consists of zeros is left out, because a skipped first step
        may create it."""
        dumps = {name: dump(tensor) for name, tensor in self.tensors() if not name.startswith("grad")}
        return {name: bits for name, bits in dumps.items() if bits.strip("0")}


class Script:
    def __init__(self):
        self.facts = collections.Counter()

    def scaler(self, enabled, scale, growth, backoff, interval):
        self.amp = torch.amp.GradScaler("cpu", float(scale), float(growth), float(backoff),
                                        int(interval), enabled == "1")
        self.optimizers, self.saved = [], self.amp.state_dict()
        self.facts["scripts"] += 1

    def optimizer(self, *arguments):
        self.optimizers.append(Optimizer(*arguments))
        self.facts[f"{arguments[1]} {arguments[0]}"] += 1

    def zero(self, k):
        self.optimizers[int(k)].of_python.zero_grad()

    def backward(self, k, *numbers):
        self.amp.scale(sum(self.optimizers[int(k)].losses(numbers))).backward()

    def backward_list(self, k, *numbers):
        for loss in self.amp.scale(self.optimizers[int(k)].losses(numbers)):
            loss.backward()

    def unscale(self, k):
        self.amp.unscale_(self.optimizers[int(k)].of_python)

    def clip(self, k, max_norm):
        norm = torch.nn.utils.clip_grad_norm_(self.optimizers[int(k)].params, float(max_norm))
        return dump(norm)

    def step(self, k):
        optimizer = self.optimizers[int(k)]
        first = optimizer.skipped_first or optimizer.has_no_state()
        before = optimizer.dumps()
        try:
            self.amp.step(optimizer.of_python)
        except AttributeError:  # without a check, found_inf is an int
            del optimizer.of_python.grad_scale, optimizer.of_python.found_inf
            raise
        if not self.amp.is_enabled():
            return "done"
        found = self.amp._found_inf_per_device(optimizer.of_python).values()
        idle = all(p.grad is None for p in optimizer.params)
        is_skipped = any(x.item() for x in found)
        if idle:
            self.facts["idle"] += 1
            return "idle"
        self.facts["skipped" if is_skipped else "stepped"] += 1
        if optimizer.keeps_momentum and first:
            # sconce's rule: where Python now has a buffer that was never written to, sconce has no buffer or a buffer of
            # zeros, and the next step counts as the first.
            optimizer.skipped_first = is_skipped
            if optimizer.skipped_first:
                self.facts["skipped first steps that leave Python's momentum unwritten"] += 1
                for p in optimizer.params:
                    optimizer.of_python.state[p]["momentum_buffer"] = None
        return "unchanged" if is_skipped or optimizer.dumps() == before else "changed"

    def closure(self, k):
        self.amp.step(self.optimizers[int(k)].of_python, closure=lambda: torch.zeros(()))

    def update(self, scale=None):
        self.amp.update(None if scale is None else float(scale))

    def interval(self, number):
        self.amp.set_growth_interval(int(number))

    def factors(self, growth, backoff):
        self.amp.set_growth_factor(float(growth))
        self.amp.set_backoff_factor(float(backoff))

    def save(self):
        self.saved = self.amp.state_dict()

    def load(self):
        self.amp.load_state_dict(self.saved)

    def load_empty(self):
        self.amp.load_state_dict({})

    def reload(self, enabled):
        self.amp = torch.amp.GradScaler("cpu", enabled=enabled == "1")
        self.amp.load_state_dict(self.saved)

    def state(self):
        state = self.amp.state_dict()
        if not state:
            return f"{int(self.amp.is_enabled())} {bits(self.amp.get_scale())} empty"
        return " ".join([str(int(self.amp.is_enabled())), bits(self.amp.get_scale()),
                         bits(state["scale"]), bits(state["growth_factor"]),
                         bits(state["backoff_factor"]), str(state["growth_interval"]),
                         str(state["_growth_tracker"])])

    def run(self, command, file):
        name, *arguments = command.split()
        file.write(f"> {command}\n")
        try:
            note = getattr(self, name)(*arguments) or "done"
        except (AssertionError, AttributeError, RuntimeError, ValueError) as error:
            note = "refused:" + str(error).split("\n")[0].replace(" ", "_")
            self.facts["refused"] += 1
        file.write(f"= {note} {self.state()}\n")
        if name in ["zero", "backward", "backward_list", "unscale", "clip", "step"]:
            for tensor_name, tensor in self.optimizers[int(arguments[0])].tensors():
                file.write(f". {tensor_name} {dump(tensor)}\n")


def flag(probability):
    return "1" if random.random() < probability else "0"


def optimizer_command(mode, plain):
    names = ["SGD", "Adam", "AdamW"]
    if mode in ("foreach", "for_loop"):
        names += ["Adagrad", "RMSprop", "NAdam"]
    if mode == "fused":
        names += ["SGD", "Adagrad" if SCALED_ADAGRAD else "SGD"]
    name = random.choice(names)
    momentum = random.choice(["0", "0.9", "0.5"])
    nesterov = flag(0.3) if momentum != "0" else "0"
    dampening = random.choice(["0", "0", "0.3"]) if nesterov == "0" else "0"
    # LibTorch's own optimizers have no maximize.
    maximize = "0" if mode == "stock" else flag(0.2)
    decay = random.choice(["0", "0.05"])
    sparse = flag(0.3) if name in ("SGD", "Adagrad") and mode != "fused" and decay == "0" else "0"
    half = random.random() < 0.12 and sparse == "0" and not plain
    dtype = "float16" if half else "float32"
    sizes = " ".join(str(random.randrange(2, 6)) for _ in range(random.randrange(1, 4)))
    return (f"optimizer {name} {mode} {random.choice(['0.1', '0.01'])} {momentum} {dampening} "
            f"{decay} {nesterov} {flag(0.3)} {maximize} {dtype} {sparse} {sizes}")


def backward_command(k, optimizer, plain):
    words = optimizer.split()
    sizes = [len(INDEX) if words[11] == "1" else int(size) for size in words[12:]]
    numbers = [round(random.uniform(0.05, 3), 3) * random.choice([1, -1]) for _ in range(sum(sizes))]
    if random.random() < 0.25 and not plain:
        numbers[random.randrange(len(numbers))] = random.choice([float("inf"), float("nan")])
    kind = "backward_list" if random.random() < 0.2 else "backward"
    return f"{kind} {k} " + " ".join(str(number) for number in numbers)


def iteration(optimizers, plain):
    """Returns the commands of one regular training step."""
    commands, ends = [], []
    for k, optimizer in enumerate(optimizers):
        commands.append(f"zero {k}")
        commands += [backward_command(k, optimizer, plain) for _ in range(random.choice([1, 1, 2]))]
        if random.random() < 0.5:
            ends.append(f"unscale {k}")
            if random.random() < 0.7:
                ends.append(f"clip {k} {random.choice(['0.7', '100'])}")
        ends.append(f"step {k}")
    return commands + ends + [random.choice(["update"] * 9 + ["update 4096.0", "update 3e30"])]


def disturbed(commands, mode):
    """Occasionally removes, repeats, or swaps commands, or inserts a rare command."""
    if random.random() < 0.45:
        at = random.randrange(len(commands))
        other = random.randrange(len(commands))
        kind = random.randrange(3)
        if kind == 0:
            del commands[at]
        elif kind == 1:
            commands.insert(at, commands[at])
        else:
            commands[at], commands[other] = commands[other], commands[at]
    if random.random() < 0.35:
        rare = ["save", "save", "load", "reload 1", "load_empty", "interval 2", "factors 3.0 0.25",
                "closure 0"] + ([] if mode == "stock" else ["reload 0"])
        commands.insert(random.choice([0, len(commands), random.randrange(len(commands) + 1)]),
                        random.choice(rare))
    return commands


def write_scripts(file):
    script = Script()
    for i in range(300):
        mode = ["stock", "for_loop", "foreach", "fused"][i % 4]
        enabled = "0" if i % 12 == 11 or i % 25 == 0 else "1"
        # With float16 and infinite gradients, which a disabled scaler lets through, the results of LibTorch's own
        # optimizers differ from Python's.
        plain = mode == "stock" and enabled == "0"
        optimizers = [optimizer_command(mode, plain) for _ in range(random.choice([1, 1, 2]))]
        scale = random.choice(["65536.0", "65536.0", "1024.0", "1.0", "0.5", f"{2.0 ** 127}"])
        commands = [f"scaler {enabled} {scale} {random.choice(['2.0', '1.5'])} "
                    f"{random.choice(['0.5', '0.3'])} {random.randrange(1, 5)}", *optimizers]
        for _ in range(random.randrange(3, 9)):
            commands += disturbed(iteration(optimizers, plain), mode)
        for command in commands:
            script.run(command, file)
            script.facts["calls"] += 1
    for key, count in sorted(script.facts.items()):
        file.write(f"# {count} {key}\n")


def write_defaults(file):
    for name, parameter in inspect.signature(torch.amp.GradScaler).parameters.items():
        file.write(f"{name} {parameter.default}\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaler = torch.amp.GradScaler()
    file.write(f"default_is_enabled {scaler.is_enabled()}\ndefault_warns {len(caught) > 0}\n")


random.seed(10)
with open(sys.argv[2], "w") as out:
    {"scripts": write_scripts, "defaults": write_defaults}[sys.argv[1]](out)
