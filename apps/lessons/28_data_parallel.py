import torch
from helpers import num_gpus, try_gpu
from torch import nn


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


device = try_gpu()
two = num_gpus() > 1
print("two GPUs" if two else "one device: Python's DataParallel is the module itself")
torch.manual_seed(0)
model = nn.DataParallel(SimpleNN(), device_ids=[0, 1] if two else None).to(device)
for name, _ in model.named_parameters():
    print(name)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)

for epoch in range(5):
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"Epoch [{epoch + 1}/5], Loss: {loss.item():.4f}")

outputs = []
for shard in inputs.chunk(2):
    print(shard.shape)
    outputs.append(model.module(shard))
print(torch.allclose(torch.cat(outputs), model(inputs)))
