"""What the twins share: the Python of sconce's device helpers and of its honest clock."""
import statistics
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def cpu():
    return torch.device("cpu")


def gpu(index=0):
    return torch.device(f"cuda:{index}")


def num_gpus():
    return torch.cuda.device_count()


def try_gpu(index=0):
    return gpu(index) if index < num_gpus() else cpu()


def try_all_gpus():
    return [gpu(index) for index in range(num_gpus())] or [cpu()]


def synchronize(device):
    synchronize.count += 1
    if device.type == "cuda":
        torch.cuda.synchronize(device)


synchronize.count = 0


def median_seconds(work, device=None, runs=9):
    """Calls the work once for warming up; then each run begins and ends with the device idle."""
    device = device or try_gpu()

    def seconds():
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        return time.perf_counter() - start

    work()
    return statistics.median(seconds() for _ in range(runs))


def waits_of(work):
    """Counts how often the work waits for the device, or would if there were one."""
    before = synchronize.count
    work()
    return synchronize.count - before


def calls_of(name, work):
    """Counts how often the work calls the operator."""
    class Calls(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += func.name().split(".")[0] == name
            return func(*args, **(kwargs or {}))

    with Calls() as calls:
        work()
    return calls.count
