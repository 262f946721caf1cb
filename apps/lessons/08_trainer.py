import torch
from helpers import gpu, num_gpus
from torch import nn


# T2.47a
class Trainer:
    def __init__(self, max_epochs, num_gpus=0, gradient_clip_val=0):
        self.max_epochs = max_epochs
        self.gradient_clip_val = gradient_clip_val
        self.gpus = [gpu(i) for i in range(min(num_gpus, torch.cuda.device_count()))]

    # T2.47b
    def prepare_batch(self, batch):
        if self.gpus:
            batch = [a.to(self.gpus[0]) for a in batch]
        return batch

    # T2.47c
    def prepare_model(self, model):
        model.trainer = self
        if self.gpus:
            model.to(self.gpus[0])
        self.model = model


def fit(trainer, optimizer, batches):
    for epoch in range(1, trainer.max_epochs + 1):
        total, rows = 0, 0
        for data, target in map(trainer.prepare_batch, batches):
            loss = nn.functional.cross_entropy(trainer.model(data), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trainer.model.parameters(), trainer.gradient_clip_val)
            optimizer.step()
            total, rows = total + loss.detach() * len(data), rows + len(data)
        print(f"epoch {epoch}: loss {float(total) / rows:.4f}")


def beyond(trainer, X, y):
    print(f"Beyond the cells:\nGPUs of 10: {len(trainer.gpus)}")
    print(next(trainer.model.parameters()).device, trainer.prepare_batch([X, y])[0].device)
    sgd = torch.optim.SGD(trainer.model.parameters(), lr=0.5)
    own = Trainer(trainer.max_epochs, min(1, num_gpus()), trainer.gradient_clip_val)
    own.prepare_model(trainer.model)
    fit(own, sgd, list(zip(X.split(32), y.split(32))))


torch.manual_seed(0)
X = torch.randn(96, 2)
y = (X[:, 0] > X[:, 1]).long()
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))

trainer = Trainer(5, num_gpus=10, gradient_clip_val=1)
trainer.prepare_model(model)
beyond(trainer, X, y)
