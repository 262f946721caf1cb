import torch
from helpers import num_gpus, try_gpu
from torch import nn


def beyond(model, inputs):
    class Shard(nn.Module):
        def forward(self, x):
            return torch.tensor([[len(x), x.get_device()]], device=x.device)

    print("rows and GPU of each shard:", nn.DataParallel(Shard())(inputs), sep="\n")
    if num_gpus() < 2:
        print("fewer than two GPUs: the module itself")
    chunks = inputs.chunk(2)
    joined = torch.cat([model.module(chunk) for chunk in chunks])
    print("two chunks, close to the whole batch:", torch.allclose(joined, model(inputs)))


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


device = try_gpu()
torch.manual_seed(0)

# T4.dp
model = nn.DataParallel(SimpleNN()).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)
for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    print(f"Epoch [{epoch + 1}/5], Loss: {loss.item():.4f}")

beyond(model, inputs)
