import torch
from helpers import median_seconds, try_gpu


def beyond(x, x_gpu):
    device = x_gpu.device
    print("made there:", torch.ones(2, 3, device=device).device)

    def copy(tensor, to):
        return tensor.to(to, non_blocking=True, copy=True)

    def multiply():
        return torch.matmul(x_gpu, x_gpu.t())

    there = median_seconds(lambda: copy(x, device), device)
    back = median_seconds(lambda: copy(x_gpu, "cpu"), device)
    product = median_seconds(multiply, device)
    print("product:", multiply().shape)
    print(f"~ to the device {x.nbytes / there / 1e9:.2f} GB/s, back {x.nbytes / back / 1e9:.2f} GB/s, "
          f"the product {product * 1e3:.3f} ms")
    if device.type == "cpu":
        print("Without a GPU nothing is transferred: these are copies in memory.")
        return
    pinned = x.pin_memory()
    from_pinned = median_seconds(lambda: copy(pinned, device), device)
    print(f"~ from pinned memory {x.nbytes / from_pinned / 1e9:.2f} GB/s")
    print("values kept:", copy(pinned, device).cpu().equal(x))


torch.manual_seed(0)

# T0.copy, T1.slow, T3.to
x = torch.randn(2048, 1024)
x_gpu = x.to(try_gpu())
x_cpu = x_gpu.cpu()
print(f"{x.device} to {x_gpu.device} and back to {x_cpu.device}, {x.nbytes} bytes each way")
print("values kept:", x_cpu.equal(x))

beyond(x, x_gpu)
