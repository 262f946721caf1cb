import threading

import torch
from helpers import count_flops, gpu, median_seconds, num_gpus, synchronize, try_gpu


def wait(device):
    synchronize(device)
    wait.count += 1


def product(x):
    return torch.matmul(x, x)


def counted_product(x):
    z, operations = count_flops(lambda: torch.matmul(x, x))
    flops.append(operations)
    return z


def multiply_on_stream(x, multiply):
    with torch.cuda.stream(torch.cuda.Stream(x.device)):
        return multiply(x)


def at_once(x, y, multiply=product):
    products = [None, None]
    if x.is_cuda:
        products = [multiply_on_stream(x, multiply), multiply_on_stream(y, multiply)]
    else:
        def work(i, matrix):
            torch.set_num_threads(1)
            products[i] = multiply(matrix)

        threads = [threading.Thread(target=work, args=pair) for pair in enumerate([x, y])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wait(x.device)
    wait(y.device)
    return products


def in_turn(x, y, multiply=product):
    products = [multiply(x), multiply(y)]
    wait(x.device)
    return products


def measure(name, work, x, y):
    wait.count = 0
    flops.clear()
    products = work(x, y, counted_product)
    print(f"  {name}: waits {wait.count}, floating-point operations {sum(flops)}")
    return products, median_seconds(lambda: work(x, y))


flops = []
gpus = num_gpus()
how = ("two GPUs" if gpus > 1 else "one GPU, two streams" if gpus == 1 else "two threads")
if gpus == 0:
    torch.set_num_threads(1)
for n in [64, 1024]:  # T0.E4, T1.E4
    torch.manual_seed(0)
    print(f"n = {n}, {how}")
    x, y = (torch.randn(n, n, device=try_gpu()) for _ in range(2))
    there = y.to(gpu(1) if gpus > 1 else x.device)
    synchronize(x.device)
    synchronize(there.device)
    first, together = measure("at once", at_once, x, there)
    second, alone = measure("one after the other", in_turn, x, y)
    for z, w in [first, second]:
        checksum = (z.cpu() + w.cpu()).cumsum(0, dtype=torch.float64).sum().item()
        print(f"  products on {z.device} and {w.device}, checksum {checksum:.4e}")
    print(f"~ at once {together * 1e3:.3f} ms, one after the other {alone * 1e3:.3f} ms, "
          f"ratio {alone / together:.2f}")
print("The ratio nears 2 only for products that each keep a GPU or a core busy.")
