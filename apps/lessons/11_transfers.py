import torch
from helpers import median_seconds, try_gpu


def beyond(x, x_gpu):
    device = x_gpu.device
    print("made there:", torch.ones(2, 3, device=device).device)

    def multiply():
        return torch.matmul(x_gpu, x_gpu.t())

    def to_gpu():
        return x.to(device, copy=True)

    def to_cpu():
        return x_gpu.to("cpu", copy=True)

    gigabytes = x.nbytes / 1e9
    print("product:", multiply().shape)
    print(f"~ to the device {gigabytes / median_seconds(to_gpu, device):.2f} GB/s, "
          f"back {gigabytes / median_seconds(to_cpu, device):.2f} GB/s, "
          f"the product {median_seconds(multiply, device) * 1e3:.3f} ms")
    if device.type == "cuda":
        pinned = x.pin_memory()

        def from_pinned():
            return pinned.to(device, non_blocking=True)

        print("values kept:", from_pinned().cpu().equal(x))
        print(f"~ from pinned memory {gigabytes / median_seconds(from_pinned, device):.2f} GB/s")
    else:
        print("Without a GPU nothing is transferred: these are copies in memory.")


torch.manual_seed(0)

# T0.copy, T1.slow, T3.to
x = torch.randn(2048, 1024)
x_gpu = x.to(try_gpu())
x_cpu = x_gpu.cpu()
print(f"{x.device} to {x_gpu.device} and back to {x_cpu.device}, {x.nbytes} bytes each way")
print("values kept:", x_cpu.equal(x))

beyond(x, x_gpu)
