import torch
from helpers import try_gpu

torch.manual_seed(0)
# T3.1
matrix_size = 1000
x = torch.randn(matrix_size, matrix_size)
y = torch.randn(matrix_size, matrix_size)
z_cpu = torch.matmul(x, y)
device = try_gpu()
if torch.cuda.is_available():
    x_gpu, y_gpu = x.to(device), y.to(device)
    z_gpu = torch.matmul(x_gpu, y_gpu)
    z_cpu_from_gpu = z_gpu.cpu()
    print(torch.allclose(z_cpu, z_cpu_from_gpu))
else:
    print("GPU not available, computations performed on CPU only.")
print("Beyond the cells:")
print("float32 against float64" if device.type == "cpu" else "CPU against GPU")

tf32 = 5 * (2 * matrix_size) ** 0.5 * 2**-11
for precision in ["highest", "high"]:
    torch.set_float32_matmul_precision(precision)
    if device.type == "cpu":
        other = torch.matmul(x.double(), y.double())
    else:
        other = torch.matmul(x.to(device), y.to(device))
    other = other.to(z_cpu)
    print(f"precision {precision}")
    print("  allclose:", torch.allclose(z_cpu, other))
    print(f"  largest difference: {(z_cpu - other).abs().max().item():.1e}")
    for atol in [1e-3, tf32]:
        close = torch.allclose(z_cpu, other, rtol=1e-5, atol=atol)
        print(f"  allclose with atol {atol:.3f}:", close)
