"""Runs scripts of a Trainer as plain loops and writes what happens: oracle.py SCRIPTS TRACES [--values]

It shares nothing with sconce but LibTorch.
"""
import copy
import json
import sys
import warnings

import torch

from callbacks import Averaging, Checkpoint, EarlyStopping, Folder, Recorder, Scheduling
from loop import Trainer, text_of
from parts import (Averages, BadItem, DataLoader, Net, Planned, Refused, Trace, first_groups, items_of, make_optimizer,
                   make_scheduler, number, numbers, parameters_of, rows, state_of)


def name_of(error):
    """Returns the name of an exception that the other side also uses in its trace."""
    if isinstance(error, Planned):
        return "planned"
    if isinstance(error, BadItem):
        return f"item {error.args[0]}"
    if isinstance(error, Refused):
        return error.args[0]
    names = {"Expected more than 1 value per channel": "one value", "does not require grad": "frozen",
             "No inf checks were recorded prior to update": "no check for inf",
             "No inf checks were recorded for this optimizer": "no gradient"}
    return next((name for text, name in names.items() if text in str(error)), repr(error))


class World:
    """The state of a script: all of its objects, by number."""

    def __init__(self, script, trace):
        self.script, self.trace, self.running = script, trace, []
        seed = script["seed"]
        self.rows = {"train": rows(script["rows"], 0, seed), "test": rows(script["test_rows"], 100, seed)}
        self.folders = [Folder() for _ in range(script.get("folders", 0))]

    def build(self, seed, resume):
        torch.manual_seed(seed)
        script = self.script
        self.models = [Net(spec["kind"], spec.get("dropout", 0.0), self.trace) for spec in script["models"]]
        self.optimizers = []
        for spec in script["optimizers"]:
            net = self.models[spec["model"]]
            self.optimizers.append((spec, net, make_optimizer(spec, first_groups(spec, net))))
        self.schedulers = [make_scheduler(spec["kind"], self.optimizers[spec["optimizer"]][2])
                           for spec in script["schedulers"]]
        self.averages = [Averages(self.models[spec["model"]], spec["buffers"]) for spec in script["averages"]]
        self.trainers = []
        for spec in script["trainers"]:
            before = self.trainers[-1].metrics if spec.get("shares") and self.trainers else None
            self.trainers.append(Trainer(spec, before))
        self.loaders = [DataLoader(spec, self.rows[spec["rows"]]) for spec in script["loaders"]]
        for folder in self.folders:
            folder.reopen(resume)
        self.callbacks = [self.make_callback(i, spec) for i, spec in enumerate(script["callbacks"])]

    def make_callback(self, index, spec):
        return {"recorder": lambda: Recorder(self, spec, index),
                "early_stopping": lambda: EarlyStopping(spec),
                "scheduling": lambda: Scheduling(spec, self.schedulers[spec["of"]]),
                "averaging": lambda: Averaging(spec, self.averages[spec["of"]]),
                "checkpoint": lambda: Checkpoint(spec, self.folders[spec["of"]]),
                "null": lambda: None}[spec["kind"]]()

    def run(self):
        self.build(self.script["seed"], False)
        self.trace_state()
        for event in self.script["events"]:
            self.happen(event, None)
            self.trace_state()

    def happen(self, event, fit):
        self.trace.line("> " + event["do"])
        depth = self.trace.depth
        self.trace.depth += 1
        try:
            getattr(self, event["do"])(event, fit)
            self.trace.depth = depth
        except Exception as error:
            self.trace.depth = depth
            self.trace.line("! " + name_of(error))
            if fit is not None and not event.get("catch"):
                raise

    # The events

    def throw(self, event, fit):
        raise Planned

    def stop(self, event, fit):
        fit.should_stop = True

    def draw(self, event, fit):
        self.trace.line(numbers(torch.rand(3)))

    def restart(self, event, fit):
        self.build(event["seed"], True)

    def fit(self, event, fit):
        _, net, optimizer = self.optimizers[event["optimizer"]]
        net = self.models[event["model"]] if "model" in event else net
        test = self.loaders[event["test"]] if "test" in event else None
        epochs, stopped = self.trainers[event["trainer"]].fit(
            net, optimizer, self.loaders[event["train"]], test, [self.callbacks[i] for i in event["callbacks"]])
        self.trace.line("result" + (" stopped" if stopped else ""))
        for epoch in epochs:
            self.trace.line(text_of(epoch))

    def fit_epoch(self, event, fit):
        _, net, optimizer = self.optimizers[event["optimizer"]]
        net = self.models[event["model"]] if "model" in event else net
        epoch = self.trainers[event["trainer"]].fit_epoch(net, optimizer, self.loaders[event["train"]])
        self.trace.line("result " + text_of(epoch))

    def evaluate(self, event, fit):
        trainer = self.trainers[event["trainer"]]
        loss, values = trainer.evaluate(self.models[event["model"]], self.loaders[event["loader"]])
        self.trace.line("result" + "".join(f" {name} {number(v)}" for name, v in [("loss", loss), *values]))

    def trace_batch(self, batches):
        batch = next(batches, None)
        if batch is None:
            return False
        self.trace.line("items " + items_of(batch[0]))
        self.trace.tensors("data", batch)
        return True

    def loop(self, event, fit):
        loader = self.loaders[event["loader"]]
        batches = loader.begin(event.get("batch", 0), event.get("epoch"))
        try:
            for _ in range(event.get("batches", 1000)):
                if not self.trace_batch(batches):
                    break
        except BadItem as bad:
            self.trace.line(f"failed item {bad.args[0]}")
            raise

    def two_loops(self, event, fit):
        one, other = self.loaders[event["loader"]].begin(), self.loaders[event["other"]].begin()
        while self.trace_batch(one) and self.trace_batch(other):
            pass

    def set_epoch(self, event, fit):
        self.loaders[event["loader"]].epochs.next = event["epoch"]

    def copy_loader(self, event, fit):
        self.loaders.append(self.loaders[event["loader"]].copy())

    def eval_mode(self, event, fit):
        self.models[event["model"]].body.eval()

    def freeze(self, event, fit):
        parameters = list(self.models[event["model"]].parameters())
        parameters[event["parameter"] % len(parameters)].requires_grad_(event["thaw"])

    def set_lr(self, event, fit):
        for group in self.optimizers[event["optimizer"]][2].param_groups:
            group["lr"] = event["lr"]

    def list(self, event, fit):
        _, net, optimizer = self.optimizers[event["optimizer"]]
        optimizer.param_groups[0]["params"] = net.part(event["part"])

    def add_group(self, event, fit):
        _, net, optimizer = self.optimizers[event["optimizer"]]
        optimizer.add_param_group({"params": net.part(event["part"])})

    def move(self, event, fit):
        """A Python object stays at its address."""

    def archive(self, event, fit):
        """A state is the same after it was saved and loaded."""

    def new_head(self, event, fit):
        net = self.models[event["model"]]
        old = net.part("head")
        net.head = torch.nn.Linear(old[0].shape[1], 3)
        for _, of, optimizer in self.optimizers:
            for group in optimizer.param_groups if of is net else []:
                if any(p is old[0] for p in group["params"]):
                    group["params"] = [p for p in group["params"] if not any(p is o for o in old)] + net.part("head")
            for p in old:
                optimizer.state.pop(p, None)

    def copy_model(self, event, fit):
        net = self.models[event["model"]]
        twin = copy.deepcopy(net, {id(net.trace): net.trace})
        self.models.append(twin)
        if "of" not in event:
            return
        spec, _, optimizer = self.optimizers[event["of"]]
        twin_of = dict(zip(net.parameters(), twin.parameters()))
        other = make_optimizer(spec, [[twin_of[p] for p in group["params"]] for group in optimizer.param_groups])
        other.state.clear()  # Adagrad has created state
        for group, options in zip(other.param_groups, optimizer.param_groups):
            group.update({key: value for key, value in options.items() if key != "params"})
        for p in parameters_of(optimizer):
            if p in optimizer.state:
                other.state[twin_of[p]] = copy.deepcopy(optimizer.state[p])
        self.optimizers.append((spec, twin, other))

    # The state after each event

    def trace_sums(self, trainer):
        for metric in trainer.metrics:
            self.trace.line(f"{metric.name} {numbers(metric.sums)}")

    def trace_state(self):
        for i, net in enumerate(self.models):
            modes = "".join("t" if module.training else "e" for module in net.modules())
            modes += "".join("." if p.requires_grad else "f" for p in net.parameters())
            self.trace.tensors(f"model {i} {modes}", net.parameters())
            self.trace.tensors("  buffers", net.buffers())
        for i, (_, net, optimizer) in enumerate(self.optimizers):
            self.trace_optimizer(f"optimizer {i}", net, optimizer)
        for scheduler in self.schedulers:
            self.trace.line("scheduler" + "".join(" " + number(lr) for lr in scheduler.get_last_lr()))
        for averages in self.averages:
            self.trace.tensors("averages", averages.tensors())
        for trainer in self.trainers:
            state = trainer.scaler.state_dict()
            self.trace.line(f"trainer {number(state['scale'])} {state['_growth_tracker']}" if state else "trainer")
            self.trace_sums(trainer)
        for folder in self.folders:
            names = ["-" if p is None else "%06d-%08d" % p
                     for p in (folder.latest and folder.latest["position"], folder.best and folder.best[1])]
            self.trace.line(f"checkpoint {names[0]} best {names[1]}")
        self.trace.tensors("random", [torch.get_rng_state()])

    def trace_optimizer(self, name, net, optimizer):
        places = {id(p): i for i, p in enumerate(net.parameters())}
        for group in optimizer.param_groups:
            name += f" lr {number(group['lr'])} of"
            name += "".join(f" {places.get(id(p), -1)}" for p in group["params"])
        self.trace.line(name)
        text, tensors = "  state", []
        for i, p in enumerate(parameters_of(optimizer)):
            state = state_of(optimizer, p)
            if state:
                text += f" {i}," + ",".join(state)
                tensors += state.values()
        self.trace.tensors(text, tensors)


def main(scripts, traces, *values):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with open(scripts) as lines, open(traces, "w") as out:
        for line in lines:
            script, trace = json.loads(line), Trace(bool(values))
            out.write(f"= {script['id']}\n")
            World(script, trace).run()
            out.write("\n".join(trace.lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
