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
print("one device: DataParallel is the module itself")
torch.manual_seed(0)
model = nn.DataParallel(SimpleNN(), device_ids=[0] if num_gpus() > 0 else None).to(device)
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
    outputs.append(model(shard))
print(torch.allclose(torch.cat(outputs), model(inputs)))
