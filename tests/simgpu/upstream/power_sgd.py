"""Two ranks train with PowerSGD's hook:

  sconce-simgpu --races strict --places -- torchrun --standalone --nproc-per-node=2 power_sgd.py
"""
import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

torch.distributed.init_process_group("nccl")
device = torch.device("cuda", torch.distributed.get_rank())
torch.cuda.set_device(device)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).to(device)
net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[device])
net.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(6):
    optimizer.zero_grad()
    net(torch.ones(8, 64, device=device)).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
