"""Helpers of the Python twins: sconce's device functions and its synchronizing stopwatch, in Python."""
import time
from statistics import median

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


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


class Stopwatch:
    def __init__(self, device=cpu()):
        self.device = device
        synchronize(device)
        self.start = time.perf_counter()

    def seconds(self):
        synchronize(self.device)
        return time.perf_counter() - self.start


def median_seconds(work, device=None, runs=9):
    """Synchronizes with the device (by default the first) before and after each call but the first."""
    work()
    seconds = []
    for _ in range(runs):
        stopwatch = Stopwatch(device or try_gpu())
        work()
        seconds.append(stopwatch.seconds())
    return median(seconds)


def count_flops(work):
    """Returns the result of the work, and the floating-point operations of its products."""
    with FlopCounterMode(display=False) as counter:
        result = work()
    return result, counter.get_total_flops()


def waits_of(work):
    """Counts how often the work synchronizes with a device, including the CPU."""
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
