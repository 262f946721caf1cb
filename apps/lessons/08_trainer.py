import torch
from helpers import gpu, num_gpus
from torch import nn


class Trainer:
    def __init__(self, max_epochs, num_gpus=0, gradient_clip_val=0):
        self.max_epochs = max_epochs
        self.gpus = [gpu(i) for i in range(num_gpus)]
        self.gradient_clip_val = gradient_clip_val

    def prepare_batch(self, batch):
        return [tensor.to(self.gpus[0]) for tensor in batch] if self.gpus else batch

    def prepare_model(self, model):
        if self.gpus:
            model.to(self.gpus[0])

    def fit(self, model, optimizer, batches):
        self.prepare_model(model)
        losses = []
        for _ in range(self.max_epochs):
            total, rows = 0, 0
            for data, target in map(self.prepare_batch, batches):
                loss = nn.functional.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), self.gradient_clip_val)
                optimizer.step()
                total, rows = total + loss.detach() * len(data), rows + len(data)
            losses.append(float(total) / rows)
        return losses


torch.manual_seed(0)
X = torch.randn(96, 2)
y = (X[:, 0] > X[:, 1]).long()
net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))

trainer = Trainer(max_epochs=5, num_gpus=min(1, num_gpus()), gradient_clip_val=1)

data, target = trainer.prepare_batch([X, y])
print(data.device, target.device)
trainer.prepare_model(net)
print(next(net.parameters()).device)

sgd = torch.optim.SGD(net.parameters(), lr=0.5)
result = trainer.fit(net, sgd, list(zip(X.split(32), y.split(32))))
for epoch, loss in enumerate(result, 1):
    print(f"epoch {epoch}: loss {loss:.4f}")
