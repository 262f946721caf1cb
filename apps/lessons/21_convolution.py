import torch
from helpers import Stopwatch, cpu, median_seconds, try_gpu
from torch import nn


def backend_of(layer, input):
    backend = torch._C._select_conv_backend(input, layer.weight, layer.bias, layer.stride,
                                            layer.padding, layer.dilation, False, (0, 0), 1, None)
    return backend.name if backend.name in ("Cudnn", "Mkldnn") else "another"


torch.set_grad_enabled(False)
torch.manual_seed(0)
device = try_gpu()
# T3.3
conv_layer = nn.Conv2d(3, 64, 3, padding=1).to(device)
input_data = torch.randn(1, 3, 224, 224).to(device)
output = conv_layer(input_data)

print("Beyond the cells:")
print(output.shape, "on", output.device)
print("convolution by", backend_of(conv_layer, input_data))
if device.type != "cpu":
    print("cuDNN", torch.backends.cudnn.version())

# T3.benchmark
for benchmark in [False, True]:
    torch.backends.cudnn.benchmark = benchmark
    print("benchmark =", torch.backends.cudnn.benchmark)
    first = Stopwatch(device)
    again = conv_layer(input_data)
    seconds = first.seconds()
    print("  convolution by", backend_of(conv_layer, input_data))
    print("  close to the output before:", torch.allclose(again, output, rtol=0, atol=1e-2))
    if device.type == "cpu":
        print("  the same:", again.equal(output))
        continue
    print(f"~ first call: {seconds * 1e3:.3f} ms")
    print(f"~ median: {median_seconds(lambda: conv_layer(input_data), device) * 1e3:.3f} ms")
conv_layer.to("cpu")
input_data = input_data.cpu()
print(f"~ on the CPU: {median_seconds(lambda: conv_layer(input_data), cpu()) * 1e3:.3f} ms")
