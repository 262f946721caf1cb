import torch
from helpers import try_gpu


def beyond(x, y, z_cpu):
    device = try_gpu()
    other = torch.double if device.type == "cpu" else device
    print("float32 against float64" if device.type == "cpu" else "CPU against GPU")
    tf32 = 5 * (2 * x.size(1)) ** 0.5 * 2**-11
    for precision in ["highest", "high"]:
        torch.set_float32_matmul_precision(precision)
        z = torch.matmul(x.to(other), y.to(other)).to(z_cpu)
        print(f"{precision}: largest difference {(z_cpu - z).abs().max().item():.1e}")
        for atol in [1e-8, 1e-3, tf32]:
            close = torch.allclose(z_cpu, z, rtol=1e-5, atol=atol)
            print(f"  allclose with atol {atol:.0e}: {close}")


torch.manual_seed(0)

# T3.1
matrix_size = 1000
x = torch.randn(matrix_size, matrix_size)
y = torch.randn(matrix_size, matrix_size)
z_cpu = torch.matmul(x, y)
if torch.cuda.is_available():
    x_gpu = x.to("cuda")
    y_gpu = y.to("cuda")
    z_gpu = torch.matmul(x_gpu, y_gpu)
    z_cpu_from_gpu = z_gpu.to("cpu")
    print(torch.allclose(z_cpu, z_cpu_from_gpu))
else:
    print("GPU not available, computations performed on CPU only.")

beyond(x, y, z_cpu)
