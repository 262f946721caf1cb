import torch
from helpers import gpu, num_gpus
from torch import nn


class Trainer:
    # T2.47a
    def __init__(self, max_epochs, num_gpus=0, gradient_clip_val=0):
        self.max_epochs = max_epochs
        self.gpus = [gpu(i) for i in range(min(num_gpus, torch.cuda.device_count()))]
        self.gradient_clip_val = gradient_clip_val

    # T2.47b
    def prepare_batch(self, batch):
        return [a.to(self.gpus[0]) for a in batch] if self.gpus else batch

    # T2.47c
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

trainer = Trainer(5, num_gpus=10, gradient_clip_val=1)
print("GPUs of 10:", len(trainer.gpus))
batch = trainer.prepare_batch([X, y])
print(batch[0].device, batch[1].device)
print("the model has a board:", hasattr(net, "board"))
trainer.prepare_model(net)
print(next(net.parameters()).device)

print("Beyond the cells:")
own = Trainer(5, num_gpus=min(1, num_gpus()), gradient_clip_val=1)
own_batch = own.prepare_batch([X, y])
own.prepare_model(net)
print(own_batch[0].device, next(net.parameters()).device)
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
result = own.fit(net, sgd, list(zip(X.split(32), y.split(32))))
for epoch, loss in enumerate(result, 1):
    print(f"epoch {epoch}: loss {loss:.4f}")
board = {"label": "train loss", "x": [*range(1, 6)], "y": result}
print(f"board: {board['label']} of {len(board['x'])} points, {result[0]:.4f} to {result[-1]:.4f}")
