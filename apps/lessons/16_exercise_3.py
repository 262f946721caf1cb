import torch
from helpers import Stopwatch, try_gpu


def beyond(A, B, norms):
    torch.bmm(A, B).norm(2, (1, 2))
    stopwatch = Stopwatch(A.device)
    batched = torch.bmm(A, B).norm(2, (1, 2)).cpu()
    print(f"~ batched: {stopwatch.seconds() * 1e3:.2f} ms")
    print("last norm:", norms[999].item())
    print("close norms:", batched.allclose(norms))
    if A.is_cpu:
        print("Without a GPU nothing is transferred: a kept log saves nothing.")


device = try_gpu()
torch.manual_seed(0)
A = torch.rand(1000, 100, 100, device=device)
B = torch.rand(1000, 100, 100, device=device)
torch.matmul(A[0], B[0]).norm()

# T0.E3, T1.E3
read = torch.zeros(1000)
stopwatch = Stopwatch(device)
for i in range(1000):
    read[i] = torch.matmul(A[i], B[i]).norm().item()
one_by_one = stopwatch.seconds()

log = torch.zeros(1000, device=device)
stopwatch = Stopwatch(device)
for i in range(1000):
    log[i] = torch.matmul(A[i], B[i]).norm()
copied = log.cpu()
kept = stopwatch.seconds()

print("equal norms:", read.equal(copied))
print(f"~ one by one: {one_by_one * 1e3:.2f} ms, kept on {device}: {kept * 1e3:.2f} ms, "
      f"ratio {one_by_one / kept:.2f}")

beyond(A, B, copied)
