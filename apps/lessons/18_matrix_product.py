import torch
from helpers import try_gpu

device = try_gpu()
torch.manual_seed(0)
A, B = torch.randn(1000, 1000), torch.randn(1000, 1000)
on_cpu = torch.matmul(A, B)
print("float32 against float64" if device.type == "cpu" else "CPU against GPU")

for precision in ["highest", "high"]:
    torch.set_float32_matmul_precision(precision)
    if device.type == "cpu":
        other = torch.matmul(A.double(), B.double())
    else:
        other = torch.matmul(A.to(device), B.to(device))
    other = other.to(on_cpu)
    print(f"precision {precision}")
    print("  allclose:", torch.allclose(on_cpu, other))
    print(f"  largest difference: {(on_cpu - other).abs().max().item():.1e}")
    print("  allclose with atol 1e-3:", torch.allclose(on_cpu, other, rtol=1e-5, atol=1e-3))
