"""Two ranks wrap a network on a new stream, like Lightning, and train it on the default stream:

  sconce-simgpu --races throw --places -- torchrun --standalone --nproc-per-node=2 ddp_on_a_new_stream.py
"""
import torch

torch.distributed.init_process_group("nccl")
device = torch.device("cuda", torch.distributed.get_rank())
torch.cuda.set_device(device)
net = torch.nn.Linear(64, 64).to(device)
with torch.cuda.stream(torch.cuda.Stream()):
    net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[device])  # writes the weights of rank 0
net(torch.ones(8, 64, device=device)).sum().backward()  # does not wait for them
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
