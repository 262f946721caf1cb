"""What the twins share: the Python of sconce's device helpers and of its honest clock."""
import torch
from torch.utils.benchmark import Timer


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


def median_seconds(work):
    """Warms up, waits for the device at both ends of a run, and takes the median of the runs."""
    timer = Timer("work()", globals={"work": work}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=0.1).median
