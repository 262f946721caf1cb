import torch
from helpers import Stopwatch, cpu, median_seconds, try_gpu
from torch import nn


def beyond(layer, input, output):
    backend = torch._C._select_conv_backend(input, layer.weight, layer.bias, layer.stride,
                                            layer.padding, layer.dilation, False, (0, 0), 1, None)
    device = input.device
    print(output.shape, "on", device)
    print("by cuDNN:", backend.name == "Cudnn")
    print("by oneDNN:", backend.name == "Mkldnn")
    if device.type == "cuda":
        print("cuDNN", torch.backends.cudnn.version())
    for benchmark in [False, True]:
        torch.backends.cudnn.benchmark = benchmark
        print("benchmark =", torch.backends.cudnn.benchmark)
        if device.type == "cpu":
            continue
        fresh = torch.randn(1, 3, 224, 226 if benchmark else 225, device=device)
        stopwatch = Stopwatch(device)
        layer(fresh)
        print(f"~ first call: {stopwatch.seconds() * 1e3:.3f} ms")
        print(f"~ median: {median_seconds(lambda: layer(fresh), device) * 1e3:.3f} ms")
    layer.to("cpu")
    input = input.cpu()
    print(f"~ on the CPU: {median_seconds(lambda: layer(input), cpu()) * 1e3:.3f} ms")


torch.manual_seed(0)

# T3.3
device = try_gpu()
conv_layer = nn.Conv2d(3, 64, 3, padding=1).to(device)
input_data = torch.randn(1, 3, 224, 224).to(device)
output = conv_layer(input_data)

# T3.benchmark
torch.backends.cudnn.benchmark = True

beyond(conv_layer, input_data, output)
