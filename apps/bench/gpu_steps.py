"""Training steps on a GPU in float32, TF32, and bfloat16. Without a GPU, the same code runs on the CPU to verify that
both languages compute the same values.

"default" is the eager step, "best" is a CUDA graph, "compile" applies torch.compile to the model, and "max_autotune"
does the same in the mode that tries the most kernels and replays CUDA graphs.
"""

import torch
from torch import nn
from torch.nn import functional as F

from conv import resnet18
from gpt import GPT, GPT2
from gpu import DEVICE, wait
from training_steps import calls_of


def graphed(step, batch):
    """Returns the loss after 3 steps, and the step as a CUDA graph. Each call of the step copies the batch into the
    graph's tensors."""
    static = [tensor.clone() for tensor in batch]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(*static)

    def replay():
        for tensor, given in zip(static, batch):
            tensor.copy_(given)
        graph.replay()
        return loss

    return [replay().item()], replay


def steps_of(variant, precision, net, optimizer, batch):
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    forward = {"compile": lambda: torch.compile(net), "max_autotune": lambda: torch.compile(net, mode="max-autotune")}.get(
        variant, lambda: net)()

    def step(x, y):
        optimizer.zero_grad()
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if variant == "best" and DEVICE.type == "cuda":
        return *graphed(step, batch), wait
    return *calls_of(lambda: step(*batch)), wait


def sgd(variant, size):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 10), nn.ReLU(), nn.Linear(10, 2)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=variant != "default")
    return steps_of(variant, "fp32", net, optimizer,
                    (torch.randn(size, 3).to(DEVICE), (torch.arange(size) % 2).to(DEVICE)))


SMALL_GPT = {"symbols": 65, "features": 384, "heads": 6, "layers": 6}
GPT2_SMALL = {**GPT2, "layers": 12}


def gpt(precision, variant, size, options=SMALL_GPT, texts=16):
    torch.manual_seed(0)
    net = GPT(size, **options).to(DEVICE)
    fused = variant != "default"
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=fused, capturable=fused and DEVICE.type == "cuda")
    text = torch.randint(options["symbols"], (texts, size + 1))
    return steps_of(variant, precision, net, optimizer,
                    (text[:, :-1].to(DEVICE), text[:, 1:].flatten().to(DEVICE)))


def resnet(precision, variant, size, make=resnet18, classes=10, edge=96):
    torch.manual_seed(0)
    net = make(num_classes=classes)
    x = torch.randn(size, 3, edge, edge)
    net.to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=variant != "default")
    return steps_of(variant, precision, net, optimizer,
                    (x.to(DEVICE, memory_format=torch.channels_last), (torch.arange(size) % classes).to(DEVICE)))


def gpt_fp32(variant, size):
    return gpt("fp32", variant, size)


def gpt_tf32(variant, size):
    return gpt("tf32", variant, size)


def gpt_bf16(variant, size):
    return gpt("bf16", variant, size)


def resnet_fp32(variant, size):
    return resnet("fp32", variant, size)


def resnet_tf32(variant, size):
    return resnet("tf32", variant, size)


def resnet_bf16(variant, size):
    return resnet("bf16", variant, size)


def gpt2_bf16(variant, size):
    return gpt("bf16", variant, size, GPT2_SMALL, texts=8)


def resnet50_bf16(variant, size):
    from torchvision.models import resnet50

    return resnet("bf16", variant, size, resnet50, classes=1000, edge=224)
