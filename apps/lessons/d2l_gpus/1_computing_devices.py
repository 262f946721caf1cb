import time
from statistics import median

import torch
from torch import nn


def median_seconds(work, runs=9):
    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


# T1.cores
print(f"threads of an operation on cpu: {torch.get_num_threads()}")
print(f"a tensor on cpu:1 is on {torch.ones(1, device='cpu:1').device}")

# T1.card
for i in range(torch.cuda.device_count()):
    device = torch.device(f"cuda:{i}")
    card = torch.cuda.get_device_properties(device)
    print(f"{device}: {card.name}, {card.total_memory} bytes")
    x = torch.ones(1024, 1024, device=device)
    for j in range(torch.cuda.device_count()):
        print(f"  with x on {x.device}, cuda:{j} holds {torch.cuda.memory_allocated(j)} bytes")
    del x
if torch.cuda.device_count() < 2:
    print("needs two GPUs to compare cards")

# T1.zero
print(f"cuda equals cuda:0: {torch.device('cuda') == torch.device('cuda:0')}")
try:
    print(f"{torch.device('gpu:0')} is a device")
except RuntimeError:
    print("gpu:0 is not a device name")

# T1.devices
print((torch.device('cpu'), torch.device('cuda'), torch.device('cuda:1')))

# T1.count
print(torch.cuda.device_count())


# T1.try
def try_gpu(i=0):
    if torch.cuda.device_count() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')


def try_all_gpus():
    devices = [torch.device(f'cuda:{i}') for i in range(torch.cuda.device_count())]
    return devices if devices else [torch.device('cpu')]


print((try_gpu(), try_gpu(10), try_all_gpus()))

# Beyond the tutorial
print("Beyond the tutorial:")
for i in range(torch.cuda.device_count()):
    with torch.cuda.device(i):
        print(f"with GPU {i} as the current one, a tensor on cuda is on "
              f"{torch.ones(1, device='cuda').device}")
available = torch.get_num_threads()
x = torch.ones(500, 500)
for threads in [1, available]:
    torch.set_num_threads(threads)
    seconds = median_seconds(lambda: torch.matmul(x, x))
    print(f"~ time of a product: {seconds * 1e3:.2f} ms with {threads} of {available} threads")
