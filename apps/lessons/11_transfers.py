import torch
from helpers import median_seconds, synchronize, try_gpu

device = try_gpu()
torch.manual_seed(0)

# T0.copy, T1.slow, T3.to
x = torch.randint(2, (2048, 1024), dtype=torch.float)
on_device = x.to(device)
made_there = torch.ones(2048, 1024, device=device)
print(f"from {x.device} to {on_device.device}, {x.nbytes} bytes; made there: {made_there.device}")
print("values kept:", on_device.cpu().equal(x))
print("the same tensor:", on_device is x)


def multiply():
    return torch.matmul(on_device, on_device.t())


product = multiply()
print(f"product: {product.shape} on {product.device}, in all {product.double().sum().item()}")


def gigabytes(work):
    return x.nbytes / median_seconds(work) / 1e9


def copy(tensor, to):
    return tensor.to(to, non_blocking=True, copy=True)


there = gigabytes(lambda: copy(x, device))
back = gigabytes(lambda: (copy(on_device, "cpu"), synchronize(device)))
print(f"~ to the device {there:.2f} GB/s, back to the CPU {back:.2f} GB/s, "
      f"the product {median_seconds(multiply) * 1e3:.3f} ms")
if device.type == "cpu":
    print("Without a GPU nothing is transferred: these are copies within the memory.")
else:
    pinned = x.pin_memory()
    from_pinned = gigabytes(lambda: copy(pinned, device))
    print(f"~ to the device from pinned memory {from_pinned:.2f} GB/s")
    print("values kept:", copy(pinned, device).cpu().equal(x))
print("waits of the clock and for copies:", synchronize.count)
