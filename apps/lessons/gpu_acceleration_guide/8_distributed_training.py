import os

import torch
import torch.distributed.nn  # if imported later, it would keep the process group alive
from torch import nn
from torch.utils.data import DistributedSampler


class SimpleNN(nn.Module):
    def __init__(self):
        super(SimpleNN, self).__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.fc2(x)
        return x


torch.manual_seed(0)
if torch.cuda.is_available():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# T4.ddp
import torch.distributed as dist

dist.init_process_group(backend="nccl" if torch.cuda.device_count() > 1 else "gloo")  # guard
model = SimpleNN().to(device)
model = nn.parallel.DistributedDataParallel(model)

# Beyond the tutorial
rank, world_size = dist.get_rank(), dist.get_world_size()
if rank == 0:
    print("Beyond the tutorial:")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = list(DistributedSampler(range(100), shuffle=False))
inputs = torch.randn(100, 3)[rows].to(device)
labels = torch.randint(0, 2, (100,))[rows].to(device)
for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    mean = loss.detach() / world_size
    dist.all_reduce(mean)
    if rank == 0:
        print(f"Epoch [{epoch + 1}/5], Loss: {mean.item():.4f}")
weights = model.module.fc1.weight.detach().sum()
sums = [torch.empty_like(weights) for _ in range(world_size)]
dist.all_gather(sums, weights)
for other in range(world_size if rank == 0 else 0):
    print(f"sum of the weights on rank {other} of {world_size}: {sums[other].item():.6f}")
del model  # it also keeps the process group alive
dist.destroy_process_group()
