"""Defines the programs of the tests. Each function returns a ProgramWriter and a function that computes the same with
torch."""
import torch
from torch.nn import functional as F

from program_writer import ProgramWriter, size


def mlp(smallest=1):
    """Two layers with nested names and a dynamic batch."""
    torch.manual_seed(0)
    writer = ProgramWriter()
    batch = writer.size("batch", smallest)
    x = writer.input("x", [batch, 4])
    parameters = {}
    for name, shape in {"body.0.weight": (8, 4), "body.0.bias": (8,), "head.weight": (3, 8)}.items():
        parameters[name] = torch.randn(shape)
    values = {name: writer.weight(name, tensor) for name, tensor in parameters.items()}
    hidden = writer.call("linear", input=x, weight=values["body.0.weight"], bias=values["body.0.bias"])
    hidden = writer.call("relu", self=hidden)
    writer.output("logits", writer.call("linear", input=hidden, weight=values["head.weight"], bias=None), [batch, 3])

    def run(x):
        hidden = F.relu(F.linear(x, parameters["body.0.weight"], parameters["body.0.bias"]))
        return F.linear(hidden, parameters["head.weight"])

    return writer, run


def mlp_with_example(rows=5):
    writer, run = mlp()
    x = torch.randn(rows, 4)
    writer.example({"x": x}, {"logits": run(x)})
    return writer, run


def tied():
    """A table and a matrix of scores that share one parameter, with integer inputs."""
    torch.manual_seed(0)
    writer = ProgramWriter()
    batch = writer.size("batch")
    tokens = writer.input("tokens", [batch, 6], torch.int64)
    table = torch.randn(10, 4)
    weight = writer.weight("embedding.weight", table)
    writer.tie("head.weight", "embedding.weight")
    embedded = writer.call("embedding", weight=weight, indices=tokens)
    writer.output("output", writer.call("linear", input=embedded, weight=weight), [batch, 6, 10])
    return writer, lambda tokens: F.linear(F.embedding(tokens, table), table)


def numbers():
    """Python numbers of each type in place of tensors."""
    writer = ProgramWriter()
    batch = writer.size("batch")
    x = writer.input("x", [batch, 4])
    y = writer.call("mul", "Tensor", self=x, other={"number": {"float": 0.5}})
    y = writer.call("add", "Tensor", self=y, other={"number": 2}, alpha=3)
    y = writer.call("div", "Tensor", self=y, other={"number": size([1, "batch"])})
    writer.output("output", writer.call("add", "Scalar", self=y, other={"float": "inf"}), [batch, 4])
    writer.output("finite", y, [batch, 4])
    return writer, lambda x: (x * 0.5 + 6 + float("inf"), (x * 0.5 + 6) / len(x))


def lists():
    """Arguments and results that are lists of tensors."""
    writer = ProgramWriter()
    batch = writer.size("batch")
    x = writer.input("x", [batch, 6])
    left, middle, right = writer.call("split", "Tensor", [3], self=x, split_size=2, dim=1)
    first, second = writer.call("chunk", "", [2], self=x, chunks=2, dim=1)
    joined = writer.call("cat", tensors=[right, middle, left, first], dim=1)
    values, indices = writer.call("max", "dim", 2, self=second, dim=1)
    writer.output("joined", joined, [batch, 9])
    writer.output("values", values, [batch])
    writer.output("indices", indices, [batch], torch.int64)

    def run(x):
        left, middle, right = x.split(2, 1)
        first, second = x.chunk(2, 1)
        values, indices = second.max(1)
        return torch.cat([right, middle, left, first], 1), values, indices

    return writer, run


def in_place():
    """Operators that write to a view of a value and to an input."""
    writer = ProgramWriter()
    batch = writer.size("batch")
    x = writer.input("x", [batch, 4])
    y = writer.call("add", "Scalar", self=x, other=1)
    half = writer.call("slice", "Tensor", self=y, dim=1, start=0, end=2)
    half = writer.call("mul_", "Tensor", self=half, other={"number": 3})
    z = writer.call("relu_", self=x)
    writer.output("output", writer.call("mul", "Tensor", self=y, other=z), [batch, 4])

    def run(x):
        y = x + 1
        y[:, 0:2].mul_(3)
        return y * x.relu_()

    return writer, run


def folded_sizes():
    """A view whose sizes are sums and products of the dynamic sizes of two inputs."""
    writer = ProgramWriter()
    batch, length = writer.size("batch"), writer.size("length")
    x = writer.input("x", [batch, length, 4])
    y = writer.input("y", [length, 4])
    flat = writer.call("view", self=x, size=[size([2, "batch", "length"]), 2])
    ones = writer.call("new_ones", self=y, size=[size([1, "batch", "length"], [1, "length"])])
    total = writer.call("sum", self=ones)
    back = writer.call("reshape", self=flat, shape=[batch, length, 4])
    both = writer.call("add", "Tensor", self=back, other=y)
    writer.output("output", writer.call("mul", "Tensor", self=both, other=total), [batch, length, 4])
    return writer, lambda x, y: (x + y) * (x.shape[0] * x.shape[1] + x.shape[1])


def types(device="cpu"):
    """Arguments that are a dtype, a layout, a memory format, and a device."""
    writer = ProgramWriter(device)
    batch = writer.size("batch")
    x = writer.input("x", [batch, 2, 5, 5])
    y = writer.call("contiguous", self=x, memory_format={"memory_format": "channels_last"})
    zeros = writer.call("full", size=[5], fill_value={"float": 2}, dtype={"dtype": "float64"},
                        layout={"layout": "strided"}, device={"device": device}, pin_memory=False)
    y = writer.call("add", "Tensor", self=y, other=zeros)
    writer.output("output", writer.call("to", "dtype", self=y, dtype={"dtype": "float16"}), [batch, 2, 5, 5],
                  torch.float16)
    return writer, lambda x: (x + torch.full((5,), 2, dtype=torch.float64)).half()


def constants():
    """A constant, a buffer that batch normalization reads, and sizes that are not dynamic."""
    writer = ProgramWriter()
    x = writer.input("x", [2, 3])
    mean, variance = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 1.0, 2.0])
    shift = writer.weight("constants.0", torch.tensor([0.5]), "constant")
    y = writer.call("batch_norm", input=x, weight=None, bias=None,
                    running_mean=writer.weight("bn.mean", mean, "buffer"),
                    running_var=writer.weight("bn.var", variance, "buffer"), training=False, momentum={"float": 0.1},
                    eps={"float": 1e-5}, cudnn_enabled=True)
    writer.output("output", writer.call("add", "Tensor", self=y, other=shift), [2, 3])
    return writer, lambda x: F.batch_norm(x, mean, variance) + 0.5


def passed_through():
    """Outputs that are an input, a weight, and the same value twice."""
    writer = ProgramWriter()
    batch = writer.size("batch")
    x = writer.input("x", [batch, 2])
    weight = torch.tensor([1.0, 2.0])
    y = writer.call("mul", "Tensor", self=x, other=writer.weight("scale", weight))
    for name, value in {"same": x, "first": y, "second": y}.items():
        writer.output(name, value, [batch, 2])
    writer.output("weight", writer.call("detach", self={"value": 1}), [2])
    return writer, lambda x: (x, x * weight, x * weight, weight)


def positions():
    """Positions from a table of six rows, so a sequence has at most six tokens."""
    torch.manual_seed(0)
    writer = ProgramWriter()
    length = writer.size("length")
    x = writer.input("x", [2, length, 3])
    table = torch.randn(6, 3)
    rows = writer.call("slice", "Tensor", self=writer.weight("table", table), dim=0, start=0, end=length)
    writer.output("output", writer.call("add", "Tensor", self=x, other=rows), [2, length, 3])
    return writer, lambda x: x + table[:x.shape[1]]


def long_kernel():
    """A convolution along a dynamic size, with a kernel of 33."""
    torch.manual_seed(0)
    writer = ProgramWriter()
    length = writer.size("length")
    x = writer.input("x", [1, 1, length])
    kernel = torch.randn(1, 1, 33) / 33
    y = writer.call("conv1d", input=x, weight=writer.weight("kernel", kernel))
    writer.output("output", y, [1, 1, size([1, "length"], [-32])])
    return writer, lambda x: F.conv1d(x, kernel)


def random_inputs(writer, **sizes):
    """Returns inputs of the program for these sizes."""
    inputs = []
    for spec in writer.program["inputs"]:
        shape = [entry if isinstance(entry, int) else sizes[entry["sum"][0][1]] for entry in spec["shape"]]
        inputs.append(torch.randint(0, 10, shape) if spec["dtype"] == "int64" else torch.randn(shape))
    return inputs


def half_precision(dtype):
    """A layer in 16 bits, with an example."""
    torch.manual_seed(0)
    writer = ProgramWriter()
    x = writer.input("x", [5, 8], dtype)
    weight = torch.randn(3, 8).to(dtype)
    writer.output("output", writer.call("linear", input=x, weight=writer.weight("weight", weight)), [5, 3], dtype)
    example = torch.randn(5, 8).to(dtype)
    writer.example({"x": example}, {"output": F.linear(example, weight)})
    return writer, lambda x: F.linear(x, weight)
