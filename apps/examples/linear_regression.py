import csv
import pathlib

import torch
from torch import nn

DIABETES = pathlib.Path(__file__).parents[1] / "train/diabetes/diabetes.csv"


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(10, 1)

    def training_step(self, batch):
        X, y = batch
        return (self.net(X) - y).square().mean() / 2


patients = list(csv.reader(DIABETES.read_text().splitlines()))[1:]
table = torch.tensor([[float(number) for number in patient] for patient in patients])
table = (table - table.mean(0)) / table.std(0)
X, y = table[:, :10], table[:, 10:]
torch.manual_seed(0)
model = LinearRegression()
sgd = torch.optim.SGD(model.parameters(), lr=0.03)
for epoch in range(5):
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(epoch))
    total = torch.zeros((), dtype=torch.float64)
    for rows in order.split(32):
        loss = model.training_step((X[rows], y[rows]))
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.detach() * len(rows)
    print(f"epoch {epoch + 1}: loss {total / len(X):.6f}")
