"""Two ranks wrap a network on a new stream, as Lightning does:

  sconce-simgpu --races throw --places -- torchrun --standalone --nproc-per-node=2 ddp_on_a_new_stream.py
"""
import torch

torch.distributed.init_process_group("nccl")
device = torch.device("cuda", torch.distributed.get_rank())
torch.cuda.set_device(device)
net = torch.nn.Linear(64, 64, device=device)  # initialized on the default stream
with torch.cuda.stream(torch.cuda.Stream()):
    torch.nn.parallel.DistributedDataParallel(net, device_ids=[device])
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
