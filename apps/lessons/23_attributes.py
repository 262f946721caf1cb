import torch
from helpers import try_gpu

torch.manual_seed(0)

A = torch.randn(1000, 500).to(try_gpu())
B = torch.randn(500, 200).to(try_gpu())
C = torch.matmul(A, B)

print("Shape: ", C.shape)
print("Data type: ", C.dtype)
print("Requires gradient: ", C.requires_grad)
print("Is leaf: ", C.is_leaf)
print("Device: ", C.device)
print("Size: ", C.size())
print("Type: ", C.dtype)
print("Data: ", C.data)
