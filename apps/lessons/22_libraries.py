import os
import re

import torch
from helpers import try_gpu


def beyond():
    config = torch.__config__.show()
    for name in ["CUDA_VERSION", "CUDNN_VERSION", "BLAS_INFO", "LAPACK_INFO"]:
        found = re.search(f"{name}=([^,]*)", config)
        print(f"{name}: {found[1] if found else 'none'}")
    print("cuBLAS' workspace:", os.environ.get("CUBLAS_WORKSPACE_CONFIG", "LibTorch's choice"))


# T3.libs
x = torch.rand(2, 3, 8, 8, device=try_gpu())
weight = torch.rand(4, 3, 3, 3, device=x.device)
ones = torch.ones(3, device=x.device)
convolution = torch._C._select_conv_backend(
    x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, None)
normalization = torch._C._select_batch_norm_backend(x, ones, ones, ones, ones, True, 1e-5)
products = torch.backends.cuda.preferred_blas_library()
eigenvalues = torch.backends.cuda.preferred_linalg_library()

print("convolution by cuDNN:", convolution.name == "Cudnn")
print("convolution by oneDNN:", convolution.name == "Mkldnn")
print("normalization by cuDNN:", normalization.name == "Cudnn")
print(f"products on a GPU: at::BlasBackend::{products.name}")
print(f"eigenvalues on a GPU: at::LinalgBackend::{eigenvalues.name}")

beyond()
