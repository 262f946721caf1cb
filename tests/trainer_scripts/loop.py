"""The Trainer's fit, epoch, and test as plain loops, written from the Trainer's documentation."""
import contextlib

import torch
from torch.nn import functional as F

from parts import METRICS, Refused, mse, number, parameters_of, step


class Fit:
    """The parts of a running fit that callbacks can access."""

    def __init__(self, trainer, net, optimizer, batches):
        self.trainer, self.net, self.optimizer, self.batches = trainer, net, optimizer, batches
        self.max_epochs = 1 if trainer.fast else trainer.spec["epochs"]
        self.epochs, self.batch, self.loss, self.should_stop = [], 0, None, False
        self.loss_sum, self.examples = torch.zeros(1, dtype=torch.double), 0
        self.states = {}


def text_of(epoch):
    values = "".join(f" {name} {number(value)}" for name, value in epoch["values"])
    return f"epoch {epoch['epoch']} loss {number(epoch['loss'])}{values} examples {epoch['examples']}"


def named(epoch, name):
    return epoch["loss"] if name == "loss" else dict(epoch["values"]).get(name)


class Trainer:
    def __init__(self, spec, metrics):
        self.spec, self.metrics = spec, metrics or [METRICS[name]() for name in spec["metrics"]]
        self.fast, self.accumulate = spec.get("fast", False), spec.get("accumulate", 1)
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec.get("precision"))
        self.scaler = torch.amp.GradScaler("cpu", enabled=self.dtype is torch.float16)
        self.loss = mse if spec.get("loss") == "mse" else F.cross_entropy
        self.runs = 0  # the number of running fits and epochs that use the scaler

    def autocast(self):
        return torch.autocast("cpu", self.dtype or torch.bfloat16, enabled=self.dtype is not None)

    @contextlib.contextmanager
    def run(self, scales):
        """After a run within a fit, restores the sums of the metrics that both share, and the scale."""
        sums = [metric.sums if metric.runs else None for metric in self.metrics]
        scale = self.scaler.state_dict() if scales and self.runs else {}
        for metric in self.metrics:
            metric.runs += 1
        self.runs += scales
        try:
            yield
        finally:
            self.runs -= scales
            for metric, of_fit in zip(self.metrics, sums):
                metric.runs -= 1
                metric.sums = metric.sums if of_fit is None else of_fit
            if scale:
                self.scaler.load_state_dict(scale)

    def add(self, fit, output, target, loss):
        fit.loss_sum.add_(loss.detach(), alpha=len(target))
        fit.examples += len(target)
        for metric in self.metrics:
            metric.update(output, target)

    def values(self, fit, prefix):
        loss = fit.loss_sum.item() / fit.examples
        values = [(prefix + metric.name, metric.value()) for metric in self.metrics]
        return loss, [(name, value) for name, value in values if value is not None]

    def begin_sums(self, fit):
        fit.loss_sum.zero_()
        fit.examples = 0
        for metric in self.metrics:
            metric.reset()

    def fit(self, net, optimizer, train, test, callbacks):
        if any(callback is None for callback in callbacks):
            raise Refused("null")
        if len(train) == 0 or (test is not None and len(test) == 0):
            raise Refused("no batch")
        fit = Fit(self, net, optimizer, 1 if self.fast else len(train))
        fit.value_names = self.value_names(test is not None)
        names = [callback.name for callback in callbacks if callback.name]
        if len(set(names)) < len(names):
            raise Refused("names")
        fit.callbacks = callbacks
        with self.run(scales=True):
            self.call(fit, "setup")
            if not self.fast:
                self.call(fit, "load")
            with self.scope(fit, "on_fit_start", "on_fit_end"):
                stopped = self.epochs(fit, train, test)
            return fit.epochs, stopped

    def value_names(self, has_test):
        names = [metric.name for metric in self.metrics if metric.name in ("acc", "f1")]
        of_test = ["test_loss", *("test_" + name for name in names)]
        return ["loss", *("train_" + name for name in names), *(of_test if has_test else [])]

    def call(self, fit, hook):
        for callback in fit.callbacks:
            getattr(callback, hook)(fit)

    @contextlib.contextmanager
    def scope(self, fit, opening, closing):
        """Closes what was opened in reverse order. After an exception, exceptions from closing hooks are dropped."""
        opened = []
        try:
            for callback in fit.callbacks:
                getattr(callback, opening)(fit)
                opened.append(callback)
            yield
            while opened:
                getattr(opened.pop(), closing)(fit)
        finally:
            while opened:
                with contextlib.suppress(Exception):
                    getattr(opened.pop(), closing)(fit)

    def epochs(self, fit, train, test):
        if fit.should_stop:
            return len(fit.epochs) < fit.max_epochs
        while len(fit.epochs) < fit.max_epochs:
            fit.net.train()
            if not self.epoch(fit, train.begin(fit.batch, len(fit.epochs))):
                return True
            if test is not None:
                with self.scope(fit, "on_test_start", "on_test_end"):
                    loss, values = self.test(fit.net, test, lambda: test.begin(0, epoch=0))
                    fit.epochs[-1]["values"] += [("test_" + name, v) for name, v in [("loss", loss), *values]]
            self.call(fit, "on_epoch_end")
            stops = fit.should_stop
            if not self.fast:
                self.call(fit, "save")
            if stops and len(fit.epochs) < fit.max_epochs:
                return True
        return False

    def epoch(self, fit, batches):
        """Trains the rest of an epoch. Returns False if the fit stopped before the end of the epoch."""
        if fit.batch == 0:
            self.begin_sums(fit)
        while fit.batch < fit.batches:
            self.step(fit, batches)
            self.call(fit, "on_after_optimizer_step")
            if fit.batch == fit.batches:
                break
            stops = fit.should_stop
            wanting = [callback for callback in fit.callbacks if callback.should_save(fit.batch // self.accumulate)]
            for callback in fit.callbacks if stops else wanting:
                callback.save(fit)
            if stops:
                return False
        loss, values = self.values(fit, "train_")
        fit.epochs.append({"epoch": len(fit.epochs) + 1, "loss": loss, "values": values, "examples": fit.examples})
        fit.batch = 0
        return True

    def step(self, fit, batches):
        of_step = min(self.accumulate, fit.batches - fit.batch)
        fit.optimizer.zero_grad()
        for _ in range(of_step):
            data, target = next(batches)
            with self.autocast():
                output = fit.net(data)
                loss = self.loss(output, target)
            self.scaler.scale(loss if of_step == 1 else loss / of_step).backward()
            self.add(fit, output, target, loss)
            fit.loss = loss.detach()
        if all(p.grad is None for p in parameters_of(fit.optimizer)):
            raise Refused("no gradient")
        self.call(fit, "on_before_optimizer_step")
        if self.spec.get("clip", 0) > 0:
            self.scaler.unscale_(fit.optimizer)
            torch.nn.utils.clip_grad_norm_(parameters_of(fit.optimizer), self.spec["clip"])
        if self.scaler.is_enabled():
            self.scaler.step(fit.optimizer)
        else:
            step(fit.optimizer)
        self.scaler.update()
        fit.batch += of_step

    def fit_epoch(self, net, optimizer, train):
        if len(train) == 0:
            raise Refused("no batch")
        fit = Fit(self, net, optimizer, 1 if self.fast else len(train))
        fit.callbacks = []
        with self.run(scales=True):
            net.train()
            self.epoch(fit, train.begin())
        return fit.epochs[0]

    def test(self, net, loader, begin):
        """Returns the loss and the values. Restores the mode of every module."""
        if len(loader) == 0:
            raise Refused("no batch")
        modes = [(module, module.training) for module in net.modules()]
        fit = Fit(self, net, None, 1 if self.fast else len(loader))
        try:
            with torch.no_grad(), self.autocast():
                net.eval()
                self.begin_sums(fit)
                batches = begin()
                for _ in range(fit.batches):
                    data, target = next(batches)
                    output = net(data)
                    self.add(fit, output, target, self.loss(output, target))
        finally:
            for module, mode in modes:
                module.training = mode
        return self.values(fit, "")

    def evaluate(self, net, loader):
        with self.run(scales=False):
            return self.test(net, loader, loader.begin)
