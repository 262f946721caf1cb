"""Helpers of the Python twins: sconce's device functions and its synchronizing stopwatch, in Python."""
import time
from statistics import median

import torch


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
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
