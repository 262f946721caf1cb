import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import torch


def num_gpus():
    return torch.cuda.device_count()


def try_gpu(index=0):
    return torch.device(f"cuda:{index}" if index < num_gpus() else "cpu")


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_seconds(work, device, runs=9):
    def clock():
        synchronize(device)
        return time.perf_counter()

    work()
    seconds = []
    for _ in range(runs):
        start = clock()
        work()
        seconds.append(clock() - start)
    return median(seconds)


def in_one_thread(x):
    torch.set_num_threads(1)
    return torch.matmul(x, x)


torch.manual_seed(0)
device = try_gpu()
other = try_gpu(1) if num_gpus() > 1 else device
print(["two threads", "one GPU, two streams", "two GPUs"][min(num_gpus(), 2)])
if device.type == "cpu":
    torch.set_num_threads(1)
else:
    stream = torch.cuda.Stream(other)

# T0.E4
for n in [64, 1024]:
    x, y = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    y_other = y.to(other)
    synchronize(other)

    def at_once():
        if device.type == "cpu":
            with ThreadPoolExecutor(2) as threads:
                return tuple(threads.map(in_one_thread, [x, y]))
        first = torch.matmul(x, x)
        with torch.cuda.stream(stream):
            second = torch.matmul(y_other, y_other)
            synchronize(other)
        return first, second

    def in_sequence():
        return torch.matmul(x, x), torch.matmul(y, y)

    parallel_time = median_seconds(at_once, device)
    sequential_time = median_seconds(in_sequence, device)

    z, w = at_once()
    u, v = in_sequence()
    print(f"n = {n}, on {z.device} and {w.device}, "
          f"equal products: {u.equal(z)}, {v.cpu().equal(w.cpu())}")
    print(f"~ at once {parallel_time * 1e3:.3f} ms, in sequence {sequential_time * 1e3:.3f} ms, "
          f"ratio {sequential_time / parallel_time:.2f}")
