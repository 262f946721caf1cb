import torch
from helpers import median_seconds, synchronize, try_gpu

device = try_gpu()
torch.manual_seed(0)

x = torch.rand(2048, 2048)
on_device = x.to(device)
print("values kept:", on_device.cpu().equal(x))
print("the same tensor:", on_device is x)


def speed(what, work):
    print(f"~ {what}: {x.nbytes / median_seconds(work) / 1e9:.2f} GB/s")


def copy(tensor, to):
    return tensor.to(to, non_blocking=True, copy=True)


speed("to the device", lambda: copy(x, device))
speed("back to the CPU", lambda: (copy(on_device, "cpu"), synchronize(device)))
if device.type == "cpu":
    print("Without a GPU nothing is transferred: these are copies within the memory.")
else:
    pinned = x.pin_memory()
    speed("to the device from pinned memory", lambda: copy(pinned, device))
    print("values kept:", copy(pinned, device).cpu().equal(x))

product = median_seconds(lambda: torch.matmul(on_device, on_device))
print(f"~ a product of the matrix with itself: {product * 1e3:.3f} ms")
