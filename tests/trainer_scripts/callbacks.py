"""The callbacks of a fit, and the contents of a checkpoint."""
import copy
import math

import torch

from loop import named, text_of
from parts import Refused, number, parameters_of


class Callback:
    """Does nothing in each hook. A callback with a state has a name."""
    name = None
    spec = {}

    def should_save(self, steps):
        every = self.spec.get("every_n_train_steps", 0)
        return every > 0 and steps % every == 0

    def __getattr__(self, hook):
        if hook in ("setup", "load", "save") or hook.startswith("on_"):
            return lambda fit: None
        raise AttributeError(hook)


class Recorder(Callback):
    def __init__(self, world, spec, index):
        self.world, self.spec, self.index, self.calls = world, spec, index, {}

    def __getattr__(self, hook):
        super().__getattr__(hook)
        return lambda fit: self.hook(hook, fit)

    def hook(self, hook, fit):
        self.calls[hook] = self.calls.get(hook, 0) + 1
        loss = "-" if fit.loss is None else number(fit.loss.item())
        self.world.trace.line(f"callback {self.index} {hook} epochs {len(fit.epochs)}/{fit.max_epochs} batch "
                              f"{fit.batch}/{fit.batches} loss {loss}{' stops' if fit.should_stop else ''}")
        if hook in ("on_epoch_end", "on_test_end"):
            self.world.trace.line(text_of(fit.epochs[-1]))
        self.world.trace_sums(fit.trainer)
        for event in self.spec.get("events", []):
            if (event["hook"], event["call"]) == (hook, self.calls[hook]):
                self.world.happen(event, fit)


def check_monitor(fit, monitor):
    if monitor not in fit.value_names:
        raise Refused("monitor")


class EarlyStopping(Callback):
    def __init__(self, spec):
        self.spec, self.name, self.sign = spec, spec["name"], 1 if spec.get("mode", "min") == "min" else -1
        self.is_loaded = False

    def setup(self, fit):
        check_monitor(fit, self.spec["monitor"])
        if not self.is_loaded:
            self.state = {"wait": 0, "best": math.inf, "stopped": False}

    def on_fit_start(self, fit):
        self.is_loaded = False
        fit.should_stop |= self.state["stopped"]

    def on_epoch_end(self, fit):
        score = named(fit.epochs[-1], self.spec["monitor"])
        is_better = self.sign * score < self.state["best"]
        if is_better:
            self.state["best"] = self.sign * score
        self.state["wait"] = 0 if is_better else self.state["wait"] + 1
        waited = not is_better and self.state["wait"] >= self.spec.get("patience", 0)
        self.state["stopped"] = waited or not math.isfinite(score)
        fit.should_stop |= self.state["stopped"]

    def save_state(self):
        return dict(self.state)

    def load_state(self, state):
        self.state, self.is_loaded = dict(state), True


class Scheduling(Callback):
    def __init__(self, spec, scheduler):
        self.spec, self.name, self.scheduler = spec, spec["name"], scheduler

    def setup(self, fit):
        if "monitor" in self.spec:
            check_monitor(fit, self.spec["monitor"])

    def on_after_optimizer_step(self, fit):
        if "monitor" not in self.spec and self.spec["interval"] == "step":
            self.scheduler.step()

    def on_epoch_end(self, fit):
        if "monitor" in self.spec:
            self.scheduler.step(named(fit.epochs[-1], self.spec["monitor"]))
        elif self.spec["interval"] == "epoch":
            self.scheduler.step()

    def save_state(self):
        return copy.deepcopy(self.scheduler.state_dict())

    def load_state(self, state):
        self.scheduler.load_state_dict(copy.deepcopy(state))


class Averaging(Callback):
    def __init__(self, spec, averages):
        self.name, self.averages = spec["name"], averages

    def on_after_optimizer_step(self, fit):
        self.averages.update()

    def on_test_start(self, fit):
        self.averages.swap()

    def on_test_end(self, fit):
        self.averages.swap()

    def save_state(self):
        return [tensor.clone() for tensor in self.averages.tensors()]

    def load_state(self, state):
        self.averages.count = state[0].item()
        for (_, average, _), saved in zip(self.averages.pairs, state[1:]):
            average.copy_(saved)


class Folder:
    """The checkpoints of a run. Only the latest and the best one matter."""

    def __init__(self):
        self.latest, self.best, self.resume = None, None, False

    def reopen(self, resume):
        self.resume = resume
        if resume:
            self.best = None  # until it loads


class Checkpoint(Callback):
    def __init__(self, spec, folder):
        self.spec, self.folder = spec, folder

    def setup(self, fit):
        check_monitor(fit, self.spec["monitor"])

    def load(self, fit):
        saved = self.folder.latest
        if not self.folder.resume or saved is None:
            return
        fit.net.load_state_dict(saved["net"])
        load_optimizer(fit.optimizer, saved["optimizer"])
        if fit.trainer.scaler.is_enabled():
            fit.trainer.scaler.load_state_dict(saved["scaler"])
        for callback in fit.callbacks:
            if callback.name:
                callback.load_state(saved["callbacks"][callback.name])
        torch.set_rng_state(saved["random"])
        self.folder.best = saved["best"]
        fit.epochs, fit.batch = copy.deepcopy(saved["epochs"]), saved["batch"]
        if fit.batch > 0:
            fit.loss_sum, fit.examples = saved["loss_sum"].clone(), saved["examples"]
            for metric, sums in zip(fit.trainer.metrics, saved["sums"]):
                metric.sums = sums

    def save(self, fit):
        position = (len(fit.epochs), fit.batch)
        score = named(fit.epochs[-1], self.spec["monitor"]) if fit.batch == 0 and fit.epochs else None
        if score is not None and not math.isnan(score):
            score *= 1 if self.spec.get("mode", "min") == "max" else -1
            if self.folder.best is None or score > self.folder.best[0]:
                self.folder.best = (score, position)
        self.folder.latest = {
            "net": copy.deepcopy(fit.net.state_dict()), "optimizer": save_optimizer(fit.optimizer),
            "scaler": fit.trainer.scaler.state_dict(),
            "callbacks": {c.name: c.save_state() for c in fit.callbacks if c.name},
            "random": torch.get_rng_state(), "best": self.folder.best, "position": position,
            "epochs": copy.deepcopy(fit.epochs), "batch": fit.batch, "loss_sum": fit.loss_sum.clone(),
            "examples": fit.examples, "sums": [metric.sums for metric in fit.trainer.metrics]}


def save_optimizer(optimizer):
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return copy.deepcopy((groups, [optimizer.state.get(p) for p in parameters_of(optimizer)]))


def load_optimizer(optimizer, saved):
    groups, states = copy.deepcopy(saved)
    for group, options in zip(optimizer.param_groups, groups):
        group.update(options)
    optimizer.state.clear()
    for p, state in zip(parameters_of(optimizer), states):
        if state is not None:
            optimizer.state[p] = state
