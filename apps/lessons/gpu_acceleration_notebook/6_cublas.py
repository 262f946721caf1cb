import time
from statistics import median

import torch


def median_seconds(work, device, runs):
    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    seconds = []
    for _ in range(runs):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


torch.manual_seed(0)
where = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# T3.libs
def report(work):
    with open("/proc/self/maps") as maps:
        loaded = "libtorch_cuda_linalg" in maps.read()
    print(f"solvers loaded after {work}: {loaded}")


print(f"products on a GPU: at::BlasBackend::{torch.backends.cuda.preferred_blas_library().name}")
if torch.backends.cuda.is_built():
    torch.backends.cuda.preferred_linalg_library("cusolver")
print(f"solvers on a GPU: at::LinalgBackend::{torch.backends.cuda.preferred_linalg_library().name}")
symmetric = torch.eye(100, device=where) * 2
torch.matmul(symmetric, symmetric)
report("a product")
torch.linalg.solve(symmetric, symmetric)
torch.linalg.eigvalsh(symmetric)
report("a solve and eigenvalues")

# T3.tensor-cores
print("TF32 in convolutions:", torch.backends.cudnn.allow_tf32)
print("TF32 in products:", torch.backends.cuda.matmul.allow_tf32)
n = 1024
thirds = torch.full((n, n), 1 / 3, device=where)


def measure(name, a):
    error = (torch.matmul(a, a).to(torch.double) / (n / 9) - 1).abs().max()
    seconds = median_seconds(lambda: torch.matmul(a, a), where, runs=3)
    print(f"~ {name}: {2 * n**3 / seconds / 1e9:.0f} GFLOP/s, relative error {error.item():.1e}")


measure("float32", thirds)
torch.backends.cuda.matmul.allow_tf32 = True
measure("float32 with allow_tf32", thirds)
torch.backends.cuda.matmul.allow_tf32 = False
measure("bfloat16", thirds.to(torch.bfloat16))

# T3.8
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")  # guard
x = torch.randn(1000, 500).to(device)
y = torch.randn(500, 200).to(device)
result = torch.matmul(x, y)
print("Shape of the Tensor: ", result.shape)
print("Data Type: ", result.dtype)
print("Type: ", result.dtype)
print("requires_grad: ", result.requires_grad)
print("Is Leaf: ", result.is_leaf)
print("Device: ", result.device)
print("Size: ", result.size())
print("Result: ", result.data)

# Beyond the tutorial
print("Beyond the tutorial:")
x.requires_grad_()
result = torch.matmul(x, y)
print("requires_grad: ", result.requires_grad)
print("Is Leaf: ", result.is_leaf)
