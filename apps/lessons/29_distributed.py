import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.nn  # later, its functions would keep the group alive: it is their default
from helpers import cpu, gpu, num_gpus
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

if "RANK" not in os.environ:
    sys.exit("For two ranks: torchrun --standalone --nproc-per-node=2 apps/lessons/29_distributed.py")


def beyond(rank, world_size, weight):
    sum = weight.detach().sum()
    sums = [torch.empty_like(sum) for _ in range(world_size)]
    dist.all_gather(sums, sum)
    for other in range(world_size if rank == 0 else 0):
        print(f"rank {other} of {world_size}: weights sum to {sums[other].item():.6f}")


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


# T4.ddp
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo" if num_gpus() < world_size else "nccl")
device = gpu(int(os.environ["LOCAL_RANK"]) % num_gpus()) if num_gpus() > 0 else cpu()
torch.manual_seed(0)
model = DistributedDataParallel(SimpleNN().to(device))
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

beyond(rank, world_size, model.module.fc1.weight)
del model  # it holds the group, whose threads must end before the process
dist.destroy_process_group()
