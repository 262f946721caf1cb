from concurrent.futures import ThreadPoolExecutor

import torch
from helpers import gpu, median_seconds, num_gpus, synchronize, try_gpu


def by_one_thread(x):
    torch.set_num_threads(1)
    return torch.matmul(x, x)


def multiply_at_once(x, y):
    if x.is_cuda:
        first = torch.matmul(x, x)
        with torch.cuda.stream(stream):
            second = torch.matmul(y, y)
        synchronize(y.device)
        return first, second
    with ThreadPoolExecutor(2) as threads:
        return tuple(threads.map(by_one_thread, [x, y]))


torch.manual_seed(0)
device = try_gpu()
other = gpu(1) if num_gpus() > 1 else device
print(["two threads", "one GPU, two streams", "two GPUs"][min(num_gpus(), 2)])
if device.type == "cpu":
    torch.set_num_threads(1)
else:
    stream = torch.cuda.Stream(other)

# T0.E4, T1.E4
for n in [64, 1024]:
    x, y = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    there = y.to(other)
    synchronize(other)

    def together():
        return multiply_at_once(x, there)

    def in_turn():
        return torch.matmul(x, x), torch.matmul(y, y)

    at_once = median_seconds(together, device)
    alone = median_seconds(in_turn, device)
    z, w = together()
    u, v = in_turn()
    print(f"{n}, on {z.device} and {w.device}: z[0][1] = {z[0][1].item()}, "
          f"w[0][1] = {w[0][1].item()}")
    print(f"equal products: {u.equal(z)}, {v.cpu().equal(w.cpu())}")
    print(f"~ at once {at_once * 1e3:.3f} ms, one after the other {alone * 1e3:.3f} ms, "
          f"ratio {alone / at_once:.2f}")
