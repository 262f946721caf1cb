import torch
from helpers import cpu, gpu, median_seconds, num_gpus


def beyond(device):
    best = wins = 0
    shares = []
    for n in [4, 64, 256, 1024]:
        a, b = torch.randn(n, n), torch.randn(n, n)
        x, y = a.to(device), b.to(device)
        on_cpu = median_seconds(lambda: torch.matmul(a, b), cpu())
        product = median_seconds(lambda: torch.matmul(x, y), device)
        whole = median_seconds(lambda: torch.matmul(a.to(device), b.to(device)).cpu(), device)
        best = max(best, 2e-9 * n**3 / product)
        wins = 0 if whole > on_cpu else wins or n
        shares.append(f"{1 - product / whole:.2f}")
    print("~ transfers in the whole time:", *shares)
    print(f"~ the best rate: {best:.2f} GFLOP/s")
    if device.type == "cpu":
        print("There is no GPU here to compare with.")
    else:
        print(f"~ GPU wins from n = {wins} (0: never)")


torch.manual_seed(0)

# T0.E1, T1.E1
devices = [cpu()]
if num_gpus() > 0:
    devices.append(gpu())
for n in [4, 64, 256, 1024]:
    a, b = torch.randn(n, n), torch.randn(n, n)
    for device in devices:
        x, y = a.to(device), b.to(device)

        def multiply():
            return torch.matmul(x, y)

        seconds = median_seconds(multiply, device)
        z = multiply()
        print(f"{n} on {device}: z[0][1] = {z[0][1].item()}")
        print(f"~ {seconds * 1e3:.3f} ms, {2e-9 * n**3 / seconds:.2f} GFLOP/s")

beyond(devices[-1])
