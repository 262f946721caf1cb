import threading

import torch
from helpers import gpu, median_seconds, num_gpus, synchronize, try_gpu


def multiply_on(stream, x):
    with torch.cuda.stream(stream):
        torch.matmul(x, x)


def both_on_gpus(x, y):
    multiply_on(torch.cuda.Stream(x.device), x)
    multiply_on(torch.cuda.Stream(y.device), y)
    synchronize(x.device)
    synchronize(y.device)


def both_on_threads(x, y):
    def multiply(matrix):
        torch.set_num_threads(1)
        torch.matmul(matrix, matrix)

    threads = [threading.Thread(target=multiply, args=[matrix]) for matrix in [x, y]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


gpus = num_gpus()
print("two GPUs" if gpus > 1 else "one GPU, two streams" if gpus == 1 else "two threads")
if gpus == 0:
    torch.set_num_threads(1)
both = both_on_gpus if gpus > 0 else both_on_threads

for n in [64, 1024]:
    torch.manual_seed(0)
    x = torch.rand(n, n, device=try_gpu())
    y = torch.rand(n, n, device=gpu(1) if gpus > 1 else try_gpu())
    together = median_seconds(lambda: both(x, y))
    in_turn = median_seconds(lambda: (torch.matmul(x, x), torch.matmul(x, x)))
    print(f"~ n = {n}: at once {together * 1e3:.3f} ms, one after the other {in_turn * 1e3:.3f} ms, "
          f"ratio {in_turn / together:.2f}")
