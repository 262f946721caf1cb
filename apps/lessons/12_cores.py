import torch
from helpers import cpu, median_seconds, synchronize

# T1.cores, T2.cores
threads = torch.get_num_threads()
print(f"threads: {threads}")

torch.manual_seed(0)
x = torch.randint(2, (1000, 800), dtype=torch.float)
y = torch.randint(2, (800, 1000), dtype=torch.float)


def multiply():
    return torch.matmul(x, y)


torch.set_num_threads(1)
with_one = multiply()
seconds_of_one = median_seconds(multiply, cpu())
torch.set_num_threads(threads)
with_all = multiply()
seconds_of_all = median_seconds(multiply, cpu())

operations = 2 * x.size(0) * x.size(1) * y.size(1)
rate = operations / 1e9
print(f"~ with one thread: {seconds_of_one * 1e3:.3f} ms, {rate / seconds_of_one:.1f} GFLOP/s; "
      f"with all: {seconds_of_all * 1e3:.3f} ms, {rate / seconds_of_all:.1f} GFLOP/s")
if threads == 1:
    print("All are one here: both products were made by the same thread.")
print(f"equal products: {with_one.equal(with_all)}, in all {with_all.double().sum().item()}")
print("floating-point operations of each:", operations)
print("waits of the clock:", synchronize.count)
