"""Uses a stream's memory on another stream without waiting, and ends right after a backward pass, while a thread of
LibTorch's autograd still needs Python's lock, which the main thread keeps."""
import sys

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return 2 * x

    @staticmethod
    def backward(context, gradient):
        return 2 * gradient


net = torch.nn.Linear(256, 256).cuda()
with torch.cuda.stream(torch.cuda.Stream()):
    ones = torch.ones(64, 256, device="cuda")  # the writer
result = Double.apply(net(ones)).sum()  # the reader
sys.setswitchinterval(1000)
result.backward()
