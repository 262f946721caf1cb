import torch

torch.manual_seed(0)

# T4.tensor
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tensor = torch.randn(5, 5)
tensor = tensor.to(device)

# Beyond the tutorial
print("Beyond the tutorial:")
print(tensor)
print(f"{tensor.device} equals {device}: {tensor.device == device}")
tensor.to(torch.half)
print(f"dtype after tensor.to without an assignment: {tensor.dtype}")
print(f"a second to(device) returns the same tensor: {tensor.to(device) is tensor}")
