import torch
from helpers import cpu, median_seconds, try_gpu
from torch import nn


class SimpleNN(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.fc1 = nn.Linear(3, hidden)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def time_step(device, hidden):
    torch.manual_seed(0)
    model = SimpleNN(hidden).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(100, 3).to(device)
    labels = torch.randint(0, 2, (100,)).to(device)
    losses = []

    def train():
        for _ in range(50):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        losses.append(loss)

    seconds = median_seconds(train, device, 3)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{hidden} hidden units: {count} parameters on {model.fc1.weight.device}")
    print(f"  loss after {len(losses)} x 50 steps: {losses[-1].item():.3f}")
    print(f"~ a step: {seconds / 50 * 1e3:.3f} ms")


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

print("Beyond the cells:")
for hidden in [10, 4096]:
    time_step(cpu(), hidden)
    if device.type != "cpu":
        time_step(device, hidden)
if device.type == "cpu":
    print("There is no GPU here to compare with.")
