import torch
from helpers import median_seconds, try_gpu
from torch.utils._python_dispatch import TorchDispatchMode


class HostReads(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


device = try_gpu()
torch.manual_seed(0)
a, b = (torch.rand(1000, 100, 100, device=device) for _ in range(2))


# T0.E3, T1.E3
def one_by_one():
    log = torch.zeros(1000)
    for i in range(1000):
        log[i].fill_(torch.matmul(a[i], b[i]).norm().item())
    return log


def on_device():
    log = torch.zeros(1000, device=device)
    for i in range(1000):
        log[i].copy_(torch.matmul(a[i], b[i]).norm())
    return log.cpu()


def batched():
    return torch.bmm(a, b).norm(2, (1, 2)).cpu()


def counted(work):
    with HostReads() as host_reads:
        log = work()
    print(f"host reads: {host_reads.count}")
    return log


first, second, third = counted(one_by_one), counted(on_device), counted(batched)
print("equal norms:", first.equal(second))
print("close norms:", first.allclose(third))

slow, fast = (median_seconds(work, device, 3) for work in [one_by_one, on_device])
print(f"~ one by one: {slow * 1e3:.2f} ms")
print(f"~ kept on the device: {fast * 1e3:.2f} ms, ratio {slow / fast:.2f}")
print(f"~ batched: {median_seconds(batched, device, 3) * 1e3:.2f} ms")
if device.type == "cpu":
    print("Without a GPU nothing is transferred: there keeping the log saves nothing.")
print("Each value read makes the host wait before it asks for the next product; a log on the "
      "device is read once.")
