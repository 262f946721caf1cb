import os

import torch
import torch.distributed as dist
import torch.distributed.nn  # later, its functions would keep the group alive: it is their default
from helpers import cpu, gpu, num_gpus
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def all_gather(tensor):
    tensors = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(tensors, tensor.detach())
    return tensors


rank = int(os.environ["RANK"])
world_size = int(os.environ["WORLD_SIZE"])
device = gpu(int(os.environ["LOCAL_RANK"]) % num_gpus()) if num_gpus() > 0 else cpu()
refused = False
if num_gpus() == 0:
    try:  # T4.ddp, as told
        dist.init_process_group("nccl")
    except (RuntimeError, ValueError):
        refused = True
# T4.ddp
dist.init_process_group("gloo" if num_gpus() < world_size else "nccl")
torch.manual_seed(0)
model = DistributedDataParallel(SimpleNN().to(device))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

rows = list(DistributedSampler(range(100), shuffle=False))
inputs = torch.randn(100, 3)[rows].to(device)
labels = torch.randint(0, 2, (100,))[rows].to(device)

if rank == 0:
    print("Beyond the cells:")
if rank == 0 and refused:
    print("NCCL is refused without a GPU")
for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    losses = all_gather(loss)
    if rank == 0:
        each = " ".join(f"{loss.item():.4f}" for loss in losses)
        print(f"Epoch [{epoch + 1}/5], Loss of each rank: {each}")

fc1, fc2 = model.module.fc1, model.module.fc2
sums = all_gather(torch.cat([fc1.weight.flatten(), fc2.bias]).sum())
for other in range(world_size if rank == 0 else 0):
    print(f"rank {other} of {world_size}: parameters sum to {sums[other].item():.6f}")
del model  # it holds the group, whose threads must end before the process
dist.destroy_process_group()
