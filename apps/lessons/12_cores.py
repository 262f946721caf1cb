import torch
from helpers import median_seconds

threads = torch.get_num_threads()
print(f"threads: {threads}")

torch.manual_seed(0)
x = torch.rand(1000, 1000)
for count in [1, threads]:
    torch.set_num_threads(count)
    seconds = median_seconds(lambda: torch.matmul(x, x))
    print(f"~ a product with threads {count}: {seconds * 1e3:.3f} ms, {2e9 / seconds / 1e9:.1f} GFLOP/s")
