import torch
from helpers import try_gpu


def beyond(x, y):
    x.requires_grad_()
    result = torch.matmul(x, y)
    print("With a gradient, requires_grad: ", result.requires_grad)
    print("With a gradient, Is Leaf: ", result.is_leaf)


torch.manual_seed(0)

# T3.8
x = torch.randn(1000, 500).to(try_gpu())
y = torch.randn(500, 200).to(try_gpu())
result = torch.matmul(x, y)

print("Shape of the Tensor: ", result.shape)
print("Data Type: ", result.dtype)
print("Type: ", result.dtype)
print("requires_grad: ", result.requires_grad)
print("Is Leaf: ", result.is_leaf)
print("Device: ", result.device)
print("Size: ", result.size())
print("Result: ", result.data)

beyond(x, y)
