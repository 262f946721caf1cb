import torch
from helpers import cpu, gpu, median_seconds, try_gpu
from torch import nn


def beyond(device):
    if device.type == "cpu":
        print("There is no GPU here to compare with.")
    for hidden in [10, 4096]:
        for where in [cpu(), gpu()]:
            if where.type == "cuda" and device.type == "cpu":
                continue
            model = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 2)).to(where)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            inputs = torch.randn(100, 3).to(where)
            labels = torch.randint(0, 2, (100,)).to(where)

            def step():
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()

            seconds = median_seconds(step, where)
            print(f"~ a step of {hidden} hidden units on {where}: {seconds * 1e3:.3f} ms")


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


device = try_gpu()
torch.manual_seed(0)

# T4.loop
model = SimpleNN().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)

num_epochs = 5
for epoch in range(num_epochs):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    print(f"Epoch [{epoch + 1}/{num_epochs}], Loss: {loss.item():.4f}")

beyond(device)
