"""Creates random scripts for a Trainer. The seed determines everything in a script."""
import random

HOOKS = ["setup", "load", "on_fit_start", "on_fit_end", "on_before_optimizer_step", "on_after_optimizer_step", "on_epoch_end",
         "on_test_start", "on_test_end", "save"]


SCHEDULERS = ["step", "exponential", "cosine", "linear", "plateau", "restarts", "constant", "polynomial"]


class Script:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.metrics = r.choice([["acc"], ["acc", "cells"], ["f1", "spread"], [], ["spread", "acc", "f1"]])
        self.script = {"id": seed, "seed": r.randrange(10**6), "rows": r.randint(4, 11), "test_rows": r.randint(2, 5)}
        models = r.choice([1, 2, 2])
        self.script["trainers"] = [self.trainer() for _ in range(r.choice([1, 1, 2]))]
        self.script["trainers"][-1]["shares"] = self.maybe(0.5)  # shares the metrics of the previous trainer
        self.is_half = any(t.get("precision") == "fp16" for t in self.script["trainers"])
        self.script["models"] = [self.model() for _ in range(models)]
        self.script["optimizers"] = [self.optimizer(i) for i in range(models)]
        self.script["loaders"] = [self.loader("train"), self.loader("train"), self.loader("test"), self.loader("test")]
        self.script["schedulers"] = [{"optimizer": i, "kind": r.choice(SCHEDULERS)}
                                     for i in range(models) for _ in range(r.choice([0, 0, 1, 2]))]
        self.script["averages"] = [{"model": i, "buffers": r.random() < 0.5}
                                   for i in range(models) for _ in range(r.choice([0, 0, 1, 2]))]
        self.script["folders"] = r.choice([0, 0, 0, 1, 2])
        self.make_callbacks()
        self.templates = [self.fit(0, checkpoint=i) for i in range(self.script["folders"])]
        self.reset()
        self.script["events"] = [event for _ in range(r.randint(2, 5)) for event in self.top_events()]
        self.script["events"] += [{"do": "loop", "loader": i} for i in range(len(self.script["loaders"]))]

    def maybe(self, chance):
        return self.r.random() < chance

    def reset(self):
        """Resets to the objects that exist after a restart, which are the ones that the script begins with."""
        self.models = list(range(len(self.script["models"])))
        self.owners = list(self.models)  # the model that each optimizer belongs to
        self.loaders = {"train": [0, 1], "test": [2, 3]}
        self.count = len(self.script["loaders"])
        self.is_whole = {i: True for i in self.owners}

    # Objects

    def every_n_train_steps(self):
        return {"every_n_train_steps": self.r.choice([1, 2])} if self.maybe(0.3) else {}

    def trainer(self):
        r = self.r
        spec = {"epochs": r.choice([1, 2, 2, 3, 3]), "metrics": self.metrics, "accumulate": r.choice([1, 1, 2, 3]),
                "precision": r.choice(["fp32", "fp32", "fp32", "bf16", "fp16"])}
        spec.update({key: value for key, value in [("clip", 0.25), ("fast", True), ("loss", "mse")]
                     if self.maybe({"fast": 0.06, "loss": 0.2}.get(key, 0.3))})
        return spec

    def model(self):
        return {"kind": self.r.choice(["linear", "mlp", "mlp", "norm", "conv"]),
                "dropout": self.r.choice([0, 0, 0.25])}

    def optimizer(self, model):
        r = self.r
        has_body = self.script["models"][model]["kind"] != "linear"
        kinds = ["sgd", "sgd", "adam", "adamw", "adagrad", "rmsprop", "nadam"] + ["torch"] * (model > 0)
        spec = {"model": model, "kind": r.choice(kinds), "lr": r.choice([0.01, 0.05, 0.1]),
                "kernels": r.choice(["fused", "fused", "foreach", "loop"]), "weight_decay": r.choice([0, 0, 0.125]),
                "covers": r.choice(["all", "all", "both", "head", "body"] if has_body else ["all"]),
                "momentum": r.choice([0, 0.75, 0.75]), "flag": self.maybe(0.3)}
        if spec["kind"] in ("rmsprop", "nadam") and spec["kernels"] == "fused":
            spec["kernels"] = "foreach"  # they have no fused kernels
        if spec["kind"] == "sgd":
            if self.is_half and spec["kernels"] == "fused":
                spec["momentum"] = 0  # Python's buffers stay uninitialized if the first step is skipped
            spec["flag"] = spec["flag"] and spec["momentum"] > 0
        return spec

    def loader(self, rows):
        r = self.r
        spec = {"rows": rows, "batch": r.choice([2, 3, 3, 4, 5]) if rows == "train" else r.choice([1, 2, 3]),
                "seed": r.randrange(100)}
        kind = r.choice(["plain", "shuffle", "shuffle", "shuffle", "random", "weighted", "distributed"])
        if kind in ("shuffle", "distributed"):
            spec["shuffle"] = kind == "shuffle" or self.maybe(0.7)
        if kind not in ("plain", "shuffle"):
            spec["sampler"] = kind
        if kind == "weighted":
            spec["replacement"] = self.maybe(0.5)
            spec["samples"] = r.randint(2, self.script["rows" if rows == "train" else "test_rows"])
        if kind == "distributed":
            spec["rank"] = r.choice([0, 1])
        if self.maybe(0.2) and rows == "train":
            spec["drop_last"] = True
        if self.maybe(0.5):
            spec["workers"] = r.choice([0, 0, 2, 4])
            spec["prefetch"] = r.choice([1, 2])
            if self.maybe(0.15):
                first = 0 if rows == "train" else 100
                items = range(first, first + self.script["rows" if rows == "train" else "test_rows"])
                spec["bad"] = sorted(i - first for i in r.sample(items, r.choice([1, 2])))
                spec["by_torch"] = self.maybe(0.3)
        if self.maybe(0.3):
            spec["noise"] = True
            spec["noise_seed"] = r.choice([0, 7, 2**40])
        return spec

    def monitor(self, test):
        names = ["loss"] + ["train_" + m for m in self.metrics if m in ("acc", "f1")]
        if test:
            names += ["test_loss"] + ["test_" + m for m in self.metrics if m in ("acc", "f1")]
        return {"monitor": self.r.choice(names), "mode": self.r.choice(["min", "max"])}

    def make_callbacks(self):
        """Callback 0 records fits of optimizer 0, 1 all outer fits, and 2 nested fits; others belong to an optimizer."""
        r, specs = self.r, [{"kind": "recorder", **self.every_n_train_steps()} for _ in range(3)]
        self.of_optimizer = {i: [] for i in range(len(self.script["optimizers"]))}
        for i, of in enumerate(self.script["schedulers"]):
            spec = {"kind": "scheduling", "of": i, "interval": r.choice(["step", "epoch"])}
            if of["kind"] == "plateau":
                spec["monitor"] = self.monitor(False)["monitor"]
            self.own_callback(of["optimizer"], specs, spec)
        for i, of in enumerate(self.script["averages"]):
            self.own_callback(of["model"], specs, {"kind": "averaging", "of": i})
        for i in self.of_optimizer:
            for _ in range(r.choice([0, 0, 1, 2])):
                stop = {"kind": "early_stopping", "patience": r.choice([0, 1]), **self.monitor(self.maybe(0.5))}
                self.own_callback(i, specs, stop)
        self.of_folder = []
        for i in range(self.script["folders"]):
            self.of_folder.append(len(specs))
            specs.append({"kind": "checkpoint", "of": i, **self.monitor(self.maybe(0.5)), **self.every_n_train_steps()})
        self.script["callbacks"] = specs
        for index, count in ((0, r.choice([0, 1, 2, 3])), (1, r.choice([0, 0, 1])), (2, r.choice([0, 0, 1]))):
            specs[index]["events"] = [self.hook_event(index) for _ in range(count)]
        specs.append({"kind": "null"})

    def own_callback(self, optimizer, specs, spec):
        spec["name"] = f"c{len(specs)}" if self.maybe(0.97) else "same"
        self.of_optimizer[optimizer].append(len(specs))
        specs.append(spec)

    # Events

    def pick_loader(self, rows):
        return self.r.choice(self.loaders[rows]) if hasattr(self, "loaders") else {"train": 0, "test": 2}[rows]

    def fit(self, optimizer, is_inner=False, checkpoint=None):
        r = self.r
        event = {"do": "fit", "trainer": r.randrange(len(self.script["trainers"])), "optimizer": optimizer,
                 "train": self.pick_loader("train")}
        own = [i for i in self.of_optimizer.get(optimizer, []) if self.maybe(0.7)]
        outer = (0, 1) if optimizer == 0 else (1,)
        callbacks = own + ([2] if is_inner else [i for i in outer if self.maybe(0.8)])
        if checkpoint is not None:
            callbacks.append(self.of_folder[checkpoint])
        r.shuffle(callbacks)
        event["callbacks"] = callbacks
        monitors = [self.script["callbacks"][i].get("monitor", "") for i in callbacks]
        needs_test = any(m.startswith("test_") for m in monitors) and self.maybe(0.97)
        if self.maybe(0.6) or needs_test:
            event["test"] = self.pick_loader("test")
        if checkpoint is None and self.maybe(0.02):
            event["model"] = r.randrange(len(self.script["models"]))  # possibly not the optimizer's
        if checkpoint is None and self.maybe(0.01):
            callbacks.append(len(self.script["callbacks"]) - 1)
        return event

    def hook_event(self, of):
        r, is_inner = self.r, of == 2
        models = range(len(self.script["models"]))
        kinds = ["throw"] * 6 + ["stop"] * 3 + ["evaluate"] * 4 + ["loop", "set_epoch", "draw", "set_lr", "freeze"]
        kinds += [] if is_inner else ["fit"] * 3 + ["fit_epoch"] * 2
        what = r.choice(kinds)
        optimizer = r.choice(models)
        if what == "fit":
            event = self.fit(optimizer, is_inner=True)
            if of == 1 or optimizer == 0:  # its callbacks may be running
                event["callbacks"] = [2]
        else:
            event = self.simple(what, optimizer)
        event.update(hook=r.choice(HOOKS), call=r.choice([1, 1, 2, 3]))
        if self.maybe(0.3):
            event["catch"] = True
        return event

    def simple(self, what, optimizer):
        """Returns an event that creates no lasting object."""
        r = self.r
        event = {"do": what}
        trainer = r.randrange(len(self.script["trainers"]))
        rows = r.choice(["train", "test"])
        if what == "evaluate":
            event.update(trainer=trainer, model=optimizer, loader=self.pick_loader(rows))
        if what == "fit_epoch":
            event.update(trainer=trainer, optimizer=optimizer, train=self.pick_loader("train"))
        if what in ("loop", "set_epoch"):
            event.update(loader=self.pick_loader(rows))
        if what == "set_epoch":
            event.update(epoch=r.randrange(5))
        if what == "loop" and self.maybe(0.5):
            event.update(batches=r.choice([1, 2]))
        if what == "loop" and self.maybe(0.3):
            event.update(batch=r.choice([0, 1]), epoch=r.randrange(4))
        if what == "two_loops":
            event.update(loader=self.pick_loader(rows), other=self.pick_loader(rows))
        if what == "set_lr":
            event.update(optimizer=optimizer, lr=r.choice([0.02, 0.07]))
        if what == "freeze":
            event.update(model=optimizer, parameter=r.randrange(8), thaw=self.maybe(0.4))
        if what in ("eval_mode",):
            event.update(model=optimizer)
        if what in ("move", "archive"):
            event.update(optimizer=optimizer)
        return event

    def top_events(self):
        r = self.r
        kinds = (["fit"] * 11 + ["fit_epoch"] * 4 + ["evaluate"] * 2 + ["loop"] * 2 +
                 ["new_head"] * 5 + ["list"] * 4 + ["add_group"] * 3 +
                 ["two_loops", "set_epoch", "copy_loader", "draw", "set_lr", "freeze", "eval_mode", "archive",
                  "copy_model"])
        optimizer = r.randrange(len(self.owners))
        if self.templates and self.maybe(0.5):
            return self.checkpointed()
        what = r.choice(kinds)
        is_torch = optimizer < len(self.script["models"]) and self.script["optimizers"][optimizer]["kind"] == "torch"
        can_move = is_torch and not any(s["optimizer"] == optimizer for s in self.script["schedulers"])
        if can_move and self.maybe(0.5):
            return [self.simple("move", optimizer), self.fit(optimizer)]
        if what == "fit":
            return [self.fit(optimizer)]
        if what == "fit_epoch" and self.maybe(0.5):
            return [self.simple(what, optimizer)] * 2
        if what == "copy_loader":
            rows = r.choice(["train", "test"])
            event = {"do": what, "loader": self.pick_loader(rows)}
            self.loaders[rows].append(self.count)
            self.count += 1
            return [event]
        if is_torch and what in ("archive", "copy_model"):  # these need a state dict
            return []
        if what == "copy_model":
            self.owners.append(len(self.models))
            self.models.append(len(self.models))
            return [{"do": what, "model": self.owners[optimizer], "of": optimizer}]
        if what in ("new_head", "list", "add_group"):
            return self.regrouped(what, optimizer)
        if what in ("fit_epoch", "set_lr", "archive"):
            return [self.simple(what, optimizer)]
        return [self.simple(what, self.owners[optimizer])]

    def checkpointed(self):
        i = self.r.randrange(len(self.templates))
        if self.maybe(0.6):
            self.reset()
            restart = {"do": "restart", "seed": self.r.randrange(10**6)}
            return [self.templates[i], restart, self.templates[i]]
        return [self.templates[i]]

    def regrouped(self, what, optimizer):
        model = self.owners[optimizer]
        if model >= len(self.script["models"]) or self.templates:
            return []
        spec = self.script["optimizers"][optimizer]
        if spec["kind"] == "torch":
            return []
        if what == "new_head":
            if any(a["model"] == model for a in self.script["averages"]):
                return []
            dropped = [{"do": what, "model": model}]
            is_plain = self.is_whole[optimizer] and spec["covers"] == "all"
            if is_plain and self.script["models"][model]["kind"] != "linear" and self.maybe(0.7):
                # Only then does the optimizer keep nothing of the old head, whose memory the new head may receive.
                lists = [{"do": "list", "optimizer": optimizer, "part": part} for part in ("body", "all")]
                first, second = self.simple("fit_epoch", optimizer), self.simple("fit_epoch", optimizer)
                dropped = [first, lists[0], second, *dropped, lists[1]]
            return [*dropped, self.simple("fit_epoch", optimizer)]
        if any(s["optimizer"] == optimizer for s in self.script["schedulers"]) or not self.is_whole[optimizer]:
            return []
        if what == "add_group" and spec["covers"] in ("head", "body"):
            self.is_whole[optimizer] = False
            part = "body" if spec["covers"] == "head" else "head"
            return [{"do": what, "optimizer": optimizer, "part": part}]
        if what == "list" and spec["covers"] == "all" and self.script["models"][model]["kind"] != "linear":
            parts = [self.r.choice(["head", "body"]), "all"][:self.r.choice([1, 2])]
            return [event for part in parts for event in ({"do": what, "optimizer": optimizer, "part": part},
                                                          self.simple("fit_epoch", optimizer))]
        return []


def script(seed):
    return Script(seed).script
