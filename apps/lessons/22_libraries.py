import os
import re

import torch
from helpers import try_gpu


def built_with(name):
    found = re.search(f"{name}=([^,]*)", torch.__config__.show())
    return found[1] if found else "none"


def loaded(library):
    with open("/proc/self/maps") as maps:
        files = [line.strip().rpartition("/")[2] for line in maps]
    return next((file for file in files if file.startswith(f"{library}.so")), "none")


def convolution(x, weight):
    name = torch._C._select_conv_backend(
        x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, None).name
    return name if name in ("Cudnn", "Mkldnn", "Slow2d") else "another"


# T3.libs
for name in ["CUDA_VERSION", "CUDNN_VERSION", "BLAS_INFO", "LAPACK_INFO"]:
    print(f"built with {name}: {built_with(name)}")
for library in ["libcudnn", "libcublas", "libcublasLt"]:
    print(f"linked: {library}: {loaded(library)}")

device = try_gpu()
x, weight = torch.rand(2, 3, 8, 8, device=device), torch.rand(4, 3, 3, 3, device=device)
ones = torch.ones(3, device=device)
print("convolution on this machine:", convolution(x, weight))
normalisation = torch._C._select_batch_norm_backend(x, ones, ones, ones, ones, True, 1e-5)
print("normalisation on this machine:", "Cudnn" if normalisation.name == "Cudnn" else "Native")
torch.backends.cudnn.enabled = torch.backends.mkldnn.enabled = False
print("convolution without these libraries:", convolution(x, weight))

print(f"products on a GPU: at::BlasBackend::{torch.backends.cuda.preferred_blas_library().name}")
linalg = torch.backends.cuda.preferred_linalg_library().name
print(f"eigenvalues on a GPU: at::LinalgBackend::{linalg}")
print("cuBLAS' workspace:", os.environ.get("CUBLAS_WORKSPACE_CONFIG", "LibTorch's choice"))
