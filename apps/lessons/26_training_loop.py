import torch
from helpers import median_seconds, try_gpu
from torch import nn


class SimpleNN(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.fc1 = nn.Linear(3, hidden)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train(device, hidden, steps, show):
    torch.manual_seed(0)
    model = SimpleNN(hidden).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(100, 3).to(device)
    labels = torch.randint(0, 2, (100,)).to(device)

    for epoch in range(steps):
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if show:
            print(f"Epoch [{epoch + 1}/{steps}], Loss: {loss.item():.4f}")


def time_step(name, device, hidden):
    seconds = median_seconds(lambda: train(device, hidden, 50, False))
    print(f"~ a step with {hidden} hidden units on the {name}: {seconds / 50 * 1e3:.3f} ms")


device = try_gpu()
train(device, 10, 5, True)

for hidden in [10, 4096]:
    time_step("CPU", torch.device("cpu"), hidden)
    if device.type != "cpu":
        time_step("GPU", device, hidden)
if device.type == "cpu":
    print("There is no GPU here to compare with.")
