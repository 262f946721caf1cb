import torch
from helpers import cpu, gpu, num_gpus, try_all_gpus, try_gpu

for device in [cpu(), gpu(), gpu(1)]:
    print(repr(device), device)

try:
    torch.device("gpu")
except RuntimeError:
    print("'gpu' is not a device")
print(torch.device("cuda") == torch.device("cuda:0"))

print(num_gpus())

print(try_gpu(), try_gpu(10))
for device in try_all_gpus():
    print(repr(device))
