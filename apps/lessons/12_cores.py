import torch
from helpers import cpu, median_seconds


def beyond(threads):
    torch.manual_seed(0)
    x = torch.randint(2, (1000, 800), dtype=torch.float)
    y = torch.randint(2, (800, 1000), dtype=torch.float)

    def multiply():
        return torch.matmul(x, y)

    operations = 2 * x.size(0) * x.size(1) * y.size(1)
    print("floating-point operations:", operations)
    for used in [1, threads]:
        torch.set_num_threads(used)
        seconds = median_seconds(multiply, cpu())
        z = multiply()
        print(f"product by {torch.get_num_threads()}: {z.shape}, z[0][1] = {z[0][1].item()}")
        print(f"~ {seconds * 1e3:.3f} ms, {operations / seconds / 1e9:.1f} GFLOP/s")


# T1.cores, T2.cores
threads = torch.get_num_threads()
print("threads:", threads)

beyond(threads)
