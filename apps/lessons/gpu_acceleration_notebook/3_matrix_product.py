import torch

torch.manual_seed(0)

# T3.1
matrix_size = 1000
x = torch.randn(matrix_size, matrix_size)
y = torch.randn(matrix_size, matrix_size)
z_cpu = torch.matmul(x, y)
if torch.cuda.is_available():
    device = torch.device("cuda")
    x_gpu = x.to(device)
    y_gpu = y.to(device)
    z_gpu = torch.matmul(x_gpu, y_gpu)
    z_cpu_from_gpu = z_gpu.cpu()
    print(torch.allclose(z_cpu, z_cpu_from_gpu))
else:
    print("GPU not available, computations performed on CPU only.")

# Beyond the tutorial
print("Beyond the tutorial:")
other = torch.device("cuda") if torch.cuda.is_available() else torch.double
print("CPU and GPU" if torch.cuda.is_available() else "float32 and float64")
tf32 = 5 * (2 * matrix_size) ** 0.5 * 2**-11
for precision in ["highest", "high"]:
    torch.set_float32_matmul_precision(precision)
    z = torch.matmul(x.to(other), y.to(other)).to(z_cpu)
    print(f"{precision}: largest difference {(z_cpu - z).abs().max().item():.1e}")
    for atol in [1e-8, 1e-3, tf32]:
        close = torch.allclose(z_cpu, z, rtol=1e-5, atol=atol)
        print(f"  allclose with atol={atol:.0e}: {close}")
