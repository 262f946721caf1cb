import torch

# T2.cores
print(f"threads of an operation on cpu: {torch.get_num_threads()}")

# T2.3
import torch
from torch import nn


def cpu():
    return torch.device('cpu')


def gpu(i=0):
    return torch.device(f'cuda:{i}')


print((cpu(), gpu(), gpu(1)))


# T2.6
def num_gpus():
    return torch.cuda.device_count()


print(num_gpus())


# T2.8
def try_gpu(i=0):
    if num_gpus() >= i + 1:
        return gpu(i)
    return cpu()


def try_all_gpus():
    return [try_gpu(i) for i in range(num_gpus())]


print((try_gpu(), try_gpu(10), try_all_gpus()))

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"devices from try_all_gpus(): {len(try_all_gpus())}, "
      f"from sconce::try_all_gpus(): {len(try_all_gpus() or [cpu()])}")
print(f"index 10 is GPU number {gpu(10).index + 1}")
