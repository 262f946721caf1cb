import inspect

import torch
from torch import nn


class d2l:
    def gpu(i=0):
        return torch.device(f'cuda:{i}')

    def num_gpus():
        return torch.cuda.device_count()

    def add_to_class(Class):
        return lambda method: setattr(Class, method.__name__, method)

    class HyperParameters:
        def save_hyperparameters(self):
            for name, value in inspect.currentframe().f_back.f_locals.items():
                if name != "self":
                    setattr(self, name, value)

    class Trainer(HyperParameters):
        pass


class Board:
    xlim = None


class Model(nn.Sequential):
    board = Board()


# T2.47a
@d2l.add_to_class(d2l.Trainer)
def __init__(self, max_epochs, num_gpus=0, gradient_clip_val=0):
    self.save_hyperparameters()
    self.gpus = [d2l.gpu(i) for i in range(min(num_gpus, d2l.num_gpus()))]


# T2.47b
@d2l.add_to_class(d2l.Trainer)
def prepare_batch(self, batch):
    if self.gpus:
        batch = [a.to(self.gpus[0]) for a in batch]
    return batch


# T2.47c
@d2l.add_to_class(d2l.Trainer)
def prepare_model(self, model):
    model.trainer = self
    model.board.xlim = [0, self.max_epochs]
    if self.gpus:
        model.to(self.gpus[0])
    self.model = model


# Beyond the tutorial
print("Beyond the tutorial:")
torch.manual_seed(0)
X = torch.randn(96, 2)
y = (X[:, 0] > X[:, 1]).long()
model = Model(nn.Linear(2, 2))

trainer = d2l.Trainer(max_epochs=5, num_gpus=10, gradient_clip_val=1)
trainer.prepare_model(model)
print(f"GPUs found, of 10: {len(trainer.gpus)}")
print(f"end of the board's x axis: {model.board.xlim[1]}")
print(f"model on {next(model.parameters()).device}, "
      f"batch on {trainer.prepare_batch([X, y])[0].device}")

sgd = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(1, trainer.max_epochs + 1):
    total = 0
    for batch in zip(X.split(32), y.split(32)):
        data, target = trainer.prepare_batch(batch)
        loss = nn.functional.cross_entropy(model(data), target)
        sgd.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), trainer.gradient_clip_val)
        sgd.step()
        total = total + loss.detach() * len(data)
    print(f"epoch {epoch}: loss {float(total) / len(X):.4f}")
