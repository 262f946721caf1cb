import time
from statistics import median

import torch
import torch.nn as nn


def timed(work, device):
    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    synchronize()
    start = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - start


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# T3.rnn
images = torch.ones(2, 3, 8, 8, device=device)
kernels = torch.ones(4, 3, 3, 3, device=device)
ones = torch.ones(3, device=device)
convolution = torch._C._select_conv_backend(
    images, kernels, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, None)
normalization = torch._C._select_batch_norm_backend(images, ones, ones, ones, ones, True, 1e-5)
print("convolution by cuDNN:", convolution.name == "Cudnn")
print("normalization by cuDNN:", normalization.name == "Cudnn")
print("recurrent layer by cuDNN:", torch.cudnn_is_acceptable(torch.ones(5, 2, 3, device=device)))

# T3.benchmark
torch.backends.cudnn.benchmark = True

# T3.3
conv_layer = nn.Conv2d(in_channels=3, out_channels=64, kernel_size=3, padding=1)
if torch.cuda.is_available():
    device = torch.device("cuda")
    conv_layer = conv_layer.to(device)
input_data = torch.randn(1, 3, 224, 224).to(device)
output = conv_layer(input_data)

# Beyond the tutorial
print("Beyond the tutorial:")
print(output.shape, "on", output.device)


def count(word):
    return sum("cudnn_" in name and word in name
               for name in torch._C._dispatch_get_all_op_names())


for word in ["convolution", "relu", "norm", "rnn", "attention", "pool"]:
    print(f"cuDNN operators for {word}: {count(word)}")
for benchmark in [False, True]:
    torch.backends.cudnn.benchmark = benchmark
    fresh = torch.randn(1, 3, 224, 226 if benchmark else 225, device=device)
    first = timed(lambda: conv_layer(fresh), device)
    conv_layer(fresh)
    later = median(timed(lambda: conv_layer(fresh), device) for _ in range(9))
    print(f"~ benchmark = {benchmark:d}: first call {first * 1e3:.3f} ms, "
          f"median of later calls {later * 1e3:.3f} ms")
if device.type == "cpu":
    print("Without a GPU, the flag has no effect.")
