"""Writes vision_models.txt: torchvision's models for a seed, their outputs, and the losses of a training run.

One line for each number or list: network, kind, values as hexadecimal floats. For each tensor of the state, it is the sum.
The training run is in float64, because steps in float32 amplify the rounding differences between processors.
Run with a Python that has torchvision: OMP_NUM_THREADS=1 python3 tests/reference/vision_models.py
"""

import pathlib

import torch
from torch.nn.functional import cross_entropy
from torchvision.models import resnet, vision_transformer, vit_b_16

NETWORKS = {
    "resnet18": (64, lambda: resnet.resnet18(num_classes=5)),
    "resnet34": (64, lambda: resnet.resnet34(num_classes=5)),
    "resnet50": (64, lambda: resnet.resnet50(num_classes=5)),
    "dilated": (64, lambda: resnet.ResNet(resnet.Bottleneck, [1, 1, 2, 1], num_classes=5, zero_init_residual=True,
                                          groups=2, width_per_group=32,
                                          replace_stride_with_dilation=[False, True, True])),
    "vit_b_16": (32, lambda: vit_b_16(num_classes=5, image_size=32)),
    "represented": (24, lambda: vision_transformer.VisionTransformer(24, 8, 2, 3, 24, 32, dropout=0.25,
                                                                     attention_dropout=0.125, num_classes=5,
                                                                     representation_size=12)),
}


def tell(network, what, values):
    return " ".join([network, what, *(float(value).hex() for value in values)])


lines = []
for name, (size, make) in NETWORKS.items():
    torch.manual_seed(0)
    net = make()
    for key, value in net.state_dict().items():
        lines.append(tell(name, key, [*value.shape, value.double().sum()]))
    net.double()
    x, target = torch.randn(4, 3, size, size).double(), torch.arange(4)
    sgd = torch.optim.SGD(net.parameters(), lr=0.001)
    losses = []
    for _ in range(3):
        loss = cross_entropy(net(x), target)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    lines.append(tell(name, "losses", losses))
    with torch.no_grad():
        for memory_format in (torch.contiguous_format, torch.channels_last):
            net.to(memory_format=memory_format).eval()
            lines.append(tell(name, "logits", net(x.to(memory_format=memory_format)).flatten()))
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
