import torch
from helpers import num_gpus, try_gpu
from torch import nn

shards = []


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        shards.append(x)
        return self.fc2(torch.relu(self.fc1(x)))


device = try_gpu()
two = num_gpus() > 1
torch.manual_seed(0)
# T4.dp
model = nn.DataParallel(SimpleNN(), device_ids=[0, 1] if two else None).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)
for epoch in range(5):
    shards.clear()
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    print(f"Epoch [{epoch + 1}/5], Loss: {loss.item():.4f}")

print("Beyond the cells:")
for name, _ in model.named_parameters():
    print(name)
print("two GPUs" if two else "one device: Python's DataParallel is the module itself")
chunks = inputs.chunk(2)
if not two:
    shards.clear()
    for chunk in chunks:
        model(chunk)
for i, chunk in enumerate(chunks):
    for shard in shards:
        if shard.cpu().equal(chunk.cpu()):
            print(f"chunk {i}: {shard.shape} on {shard.device}")
joined = torch.cat([model.module(chunk) for chunk in chunks])
print("close to the whole batch:", torch.allclose(joined, model.module(inputs)))
