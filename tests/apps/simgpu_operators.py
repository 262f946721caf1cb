#!/usr/bin/env python3
"""Compares LibTorch's operators and modules on a simulated GPU with the CPU, forward and backward. Run it by hand:

  OMP_NUM_THREADS=1 build/default/bin/sconce-simgpu --hide-real-gpus --races throw -- \\
      python tests/apps/simgpu_operators.py

Three parts, all in float32: the samples in LibTorch's database of operators, the samples in its database of modules,
and training with the features that most programs use (FAMILIES). Results are equal up to rtol 1e-5 and atol 1e-6.
Prints the counts. Fails with a list of differences, or of exceptions below that no longer apply. With names, compares
only the operators and modules with these names.

If a call draws random numbers, only the sizes and types of its results are compared, because GPUs have other generators
than the CPU. A sample that the CPU rejects is skipped.
"""
import argparse
import collections
import contextlib
import copy
import functools
import importlib
import re
import sys
import types
import unittest
import warnings

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree

DTYPE = torch.float32
# The results contain arbitrary previous memory contents.
UNINITIALIZED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# LibTorch rejects these on a real GPU, too, because it has only CPU kernels or requires an argument on the CPU.
REFUSED = {
    "sparse.mm.reduce": "Could not run 'aten::_sparse_mm_reduce_impl'",
    "tensor_split": "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu":
        "Could not run 'aten::_scaled_dot_product_flash_attention_for_cpu'",
}


# GPUs use different criteria to select fused attention than the CPU, which also fuses it in these calls. The steps are
# the same.
IN_STEPS = {"nn.functional.scaled_dot_product_attention", "nn.Transformer", "nn.TransformerDecoderLayer",
            "nn.TransformerEncoder", "nn.TransformerEncoderLayer"}


class CpuRefuses(Exception):
    """The CPU rejects a sample."""


def database(module, name):
    """Returns one of LibTorch's databases. Its operators are prevented from seeding the generators, which would hide that
    they are random.

    expecttest does not need to be installed, because only one of its names is used, as the base of a class that is not
    used here.
    """
    sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))
    loaded = importlib.import_module(f"torch.testing._internal.{module}")
    loaded.wrapper_set_seed = lambda operator, *args, **kwargs: operator(*args, **kwargs)
    return getattr(loaded, name)


def copied(tensor, device):
    """Returns a copy with the same strides and offset, of all memory that views of the tensor can reach."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_conj() or tensor.is_neg():
        copy_of = tensor.detach().clone().to(device)
    else:
        memory = tensor.detach().as_strided((tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)
        copy_of = memory.clone().to(device).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return copy_of.requires_grad_(tensor.requires_grad)


def on(device, tree):
    """Returns copies of the tensors on the device, which also replaces devices that are passed by name."""
    def leaf(value):
        if isinstance(value, torch.Tensor):
            return copied(value, device)
        if isinstance(value, torch.device) or isinstance(value, str) and re.fullmatch(r"(cpu|cuda)(:\d)?", value):
            return device
        return value
    return _pytree.tree_map(leaf, tree)


def tensors(tree):
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def check_same(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, check_device=False, equal_nan=True)


def check_outputs(got, expected, has_values):
    """Compares all tensors and numbers in the results. All tensors of a call on the GPU must be on the GPU."""
    got, expected = _pytree.tree_leaves(got), _pytree.tree_leaves(expected)
    assert len(got) == len(expected), f"{len(got)} results instead of {len(expected)}"
    for ours, theirs in zip(got, expected):
        assert type(ours) is type(theirs), f"{type(ours)} instead of {type(theirs)}"
        if isinstance(theirs, torch.Tensor):
            assert ours.is_cuda, "a result is on the CPU"
            kinds = [(tensor.dtype, tensor.layout, tensor.shape) for tensor in (ours, theirs)]
            assert kinds[0] == kinds[1], f"{kinds[0]} instead of {kinds[1]}"
        if has_values and isinstance(theirs, (torch.Tensor, int, float, complex)):
            check_same(ours, theirs)


def seeded(call, device):
    torch.manual_seed(0)
    return call(device)


def on_cpu(call):
    """Returns the results of the call on the CPU, and whether it drew random numbers."""
    try:
        outputs, leaves = seeded(call, "cpu")
    except Exception as error:
        raise CpuRefuses from error
    drawn = torch.get_rng_state()
    torch.manual_seed(0)
    return outputs, leaves, not torch.equal(drawn, torch.get_rng_state())


def gradients(outputs, leaves):
    """Returns the gradients of a sum that depends on all outputs, or None if no output has a gradient."""
    outputs = [tensor for tensor in tensors(outputs) if tensor.requires_grad]
    if not outputs or not leaves:
        return None
    dense = [tensor if tensor.layout == torch.strided else tensor.to_dense() for tensor in outputs]
    real = [torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in dense]
    return torch.autograd.grad([tensor.sin().sum() for tensor in real], leaves, allow_unused=True)


def judge(call, has_values=True):
    """Compares a call on the GPU with the call on the CPU, and returns which of its results were compared.

    `call` runs the call on a device with copies of its arguments. It returns the outputs and the tensors with
    gradients.
    """
    expected, expected_leaves, is_random = on_cpu(call)
    got, leaves = seeded(call, "cuda")
    has_values = has_values and not is_random
    check_outputs(got, expected, has_values)
    if not has_values:
        return "sizes"
    try:
        expected_gradients = gradients(expected, expected_leaves)
    except Exception:
        return "forward"  # The CPU has no gradient for it.
    if expected_gradients is None:
        return "forward"
    check_outputs(gradients(got, leaves), expected_gradients, True)
    return "backward"


def first_line(error):
    text, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {text}"


def call_of_operator(op, sample):
    def call(device):
        first, args, kwargs = on(device, (sample.input, sample.args, sample.kwargs))
        with torch.device(device):
            outputs = op(first, *args, **kwargs)
        return outputs, [tensor for tensor in tensors((first, args, kwargs)) if tensor.requires_grad]
    return call


def call_of_module(module, *args, **kwargs):
    """Returns a call that returns the module's outputs followed by its buffers, which batch norm changes, for
    example."""
    def call(device):
        model = copy.deepcopy(module).to(device)
        inputs = on(device, (args, kwargs))
        outputs = model(*inputs[0], **inputs[1])
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return (outputs, list(model.buffers())), [leaf for leaf in tensors(inputs) if leaf.requires_grad] + parameters
    return call


class Report:
    """Counts the comparisons, and collects the differences."""

    def __init__(self):
        self.counts = collections.Counter()
        self.names = set()
        self.refused = set()
        self.wrong = {}

    def judge(self, name, call):
        self.names.add(name)
        attention = sdpa_kernel(SDPBackend.MATH) if name in IN_STEPS else contextlib.nullcontext()
        try:
            with attention:
                self.counts[judge(call, name not in UNINITIALIZED)] += 1
        except CpuRefuses:
            self.counts["left out"] += 1
        except Exception as error:
            if name in REFUSED and REFUSED[name] in str(error):
                self.counts["refused"] += 1
                self.refused.add(name)
            else:
                self.wrong.setdefault(name, first_line(error))

    def text(self):
        count = self.counts
        return (f"{len(self.names)}, of which {len(self.wrong)} differ. Calls: {count['backward']} are the same "
                f"forward and backward, {count['forward']} forward, {count['sizes']} in sizes; {count['refused']} are "
                f"refused as on a real GPU, {count['left out']} by the CPU")


def is_for_gpu(op):
    return DTYPE in op.dtypes and DTYPE in op.dtypesIfCUDA


def compare_operators(chosen):
    report = Report()
    for op in database("common_methods_invocations", "op_db"):
        if not is_for_gpu(op) or not chosen(op.full_name):
            continue
        torch.manual_seed(0)
        has_gradient = op.supports_autograd and DTYPE in op.backward_dtypes
        for sample in op.sample_inputs("cpu", DTYPE, requires_grad=has_gradient):
            report.judge(op.full_name, call_of_operator(op, sample))
    for name in (REFUSED.keys() - report.refused) | (UNINITIALIZED - report.names):
        if chosen(name):
            report.wrong[name] = "an exception of this script that no longer applies"
    return report


def without_dropout(module):
    """Removes dropout, because GPUs and the CPU draw different random numbers. Everything else can be compared."""
    for part in module.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
        elif isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0
    return module


def made_module(info, sample, training):
    torch.manual_seed(0)
    arguments = sample.constructor_input
    module = info.module_cls(*arguments.args, **arguments.kwargs).to(DTYPE).train(training)
    if "Lazy" in info.name:
        module(*on("cpu", sample.forward_input.args))
    return without_dropout(module)


def compare_modules(chosen):
    report = Report()
    for info in database("common_modules", "module_db"):
        if not chosen(info.name):
            continue
        for training in (True, False):
            torch.manual_seed(0)
            for sample in info.module_inputs_func(info, "cpu", DTYPE, requires_grad=True, training=training):
                module, inputs = made_module(info, sample, training), sample.forward_input
                report.judge(info.name, call_of_module(module, *inputs.args, **inputs.kwargs))
    return report


def check_both_ways(call):
    compared = judge(call)
    assert compared == "backward", f"compared in {compared} only"


def check_module(module, *args, **kwargs):
    check_both_ways(call_of_module(module, *args, **kwargs))


def trained(model, make_optimizer, batches):
    """Trains the model on the device of its first parameter, and returns its parameters."""
    optimizer = make_optimizer(model.parameters())
    device = next(model.parameters()).device
    for batch in batches:
        optimizer.zero_grad()
        model(batch.to(device)).sin().sum().backward()
        optimizer.step()
    return list(model.parameters())


def sparse_embeddings():
    for kind in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam):
        make_optimizer = functools.partial(kind, lr=0.1)
        module = nn.Embedding(20, 6, sparse=True)
        batches = [torch.randint(0, 20, (4, 5)) for _ in range(3)]
        got = trained(copy.deepcopy(module).cuda(), make_optimizer, batches)
        check_same(got, trained(module, make_optimizer, batches))


def embeddings():
    indices = torch.randint(0, 20, (4, 5))
    check_module(nn.Embedding(20, 6, padding_idx=3), indices)
    check_module(nn.Embedding(20, 6, max_norm=0.5), indices)
    check_module(nn.Embedding(20, 6, scale_grad_by_freq=True), indices.int())
    check_module(nn.Embedding(20, 6, sparse=True), indices)


def embedding_bags():
    indices, offsets = torch.randint(0, 20, (10,)), torch.tensor([0, 4, 4, 7])
    for mode in ("sum", "mean", "max"):
        for sparse in (False,) if mode == "max" else (False, True):  # max has no sparse gradient.
            check_module(nn.EmbeddingBag(20, 6, mode=mode, sparse=sparse), indices, offsets)
        check_module(nn.EmbeddingBag(20, 6, mode=mode, padding_idx=1), indices.view(2, 5))
    weights = torch.randn(10, requires_grad=True)
    check_module(nn.EmbeddingBag(20, 6, mode="sum"), indices, offsets, per_sample_weights=weights)


def scaled_dot_product_attention():
    query, key, value = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    mask = torch.rand(5, 5) > 0.3
    mask.fill_diagonal_(True)  # A query that attends to nothing has no result.
    for kwargs in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": torch.randn(5, 5)}):
        def call(device, kwargs=kwargs):
            inputs, on_device = on(device, ([query, key, value], kwargs))
            return nn.functional.scaled_dot_product_attention(*inputs, **on_device), inputs
        check_both_ways(call)


def attention():
    tokens, padding = torch.randn(2, 5, 8), torch.zeros(2, 5, dtype=torch.bool)
    padding[:, 4] = True
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    heads = nn.MultiheadAttention(8, 2, batch_first=True)
    for training in (True, False):
        check_module(heads.train(training), tokens, tokens, tokens, key_padding_mask=padding)
        check_module(encoder.train(training), tokens, src_key_padding_mask=padding)
        with torch.no_grad():  # Without a gradient, eval() has a fast path with its own kernels.
            assert judge(call_of_module(heads, tokens, tokens, tokens)) == "forward"
            assert judge(call_of_module(encoder, tokens, src_key_padding_mask=padding)) == "forward"
    check_module(nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True), tokens, tokens)


def convolutions():
    options = ({}, {"groups": 4}, {"stride": 2, "padding": 1}, {"dilation": 2, "bias": False})
    for dimensions in (1, 2, 3):
        picture = torch.randn(2, 4, *[7] * dimensions, requires_grad=True)
        for name in (f"Conv{dimensions}d", f"ConvTranspose{dimensions}d"):
            for kwargs in options:
                module = getattr(nn, name)(4, 8, 3, **kwargs)
                check_module(module, picture)
                if dimensions == 2:
                    last = picture.detach().to(memory_format=torch.channels_last).requires_grad_()
                    check_module(module.to(memory_format=torch.channels_last), last)


def batch_norms():
    for dimensions in (1, 2, 3):
        picture = torch.randn(4, 3, *[5] * dimensions, requires_grad=True)
        for kwargs in ({}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}):
            for training in (True, False):
                check_module(getattr(nn, f"BatchNorm{dimensions}d")(3, **kwargs).train(training), picture)


def recurrent():
    steps = torch.randn(6, 3, 5, requires_grad=True)
    for make, kwargs in ((nn.LSTM, {}), (nn.LSTM, {"proj_size": 3}), (nn.GRU, {}), (nn.RNN, {})):
        module = make(5, 7, 2, bidirectional=True, **kwargs)
        check_module(module, steps)

        def packed(device, module=module):
            model = copy.deepcopy(module).to(device)
            of_lengths = nn.utils.rnn.pack_padded_sequence(on(device, steps), [6, 4, 2])
            return model(of_lengths)[0].data, list(model.parameters())
        check_both_ways(packed)
    for make in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        check_module(make(5, 7), steps.detach()[0])


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def data_parallel():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    batches = [torch.randn(7, 3, 8, 8) for _ in range(3)]
    parallel = nn.DataParallel(copy.deepcopy(module).cuda(), device_ids=[0, 1])
    check_same(trained(parallel, sgd, batches), trained(module, sgd, batches))


class Pipeline(nn.Sequential):
    """Each stage computes on the device of its parameters. The chunks of the batch pass through the stages one after
    another."""

    def forward(self, batch):
        chunks = list(batch.chunk(4))
        for stage in self:
            chunks = [stage(chunk.to(next(stage.parameters()).device, non_blocking=True)) for chunk in chunks]
        return torch.cat(chunks)


def pipeline():
    module = Pipeline(nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3)))
    on_two = copy.deepcopy(module)
    on_two[0].to("cuda:0")
    on_two[1].to("cuda:1")
    batches = [torch.randn(8, 6) for _ in range(3)]
    check_same(trained(on_two, sgd, batches), trained(module, sgd, batches))


def trained_in_half(module, batches, device):
    """Returns the parameters and the scale after steps with scaled gradients."""
    model = copy.deepcopy(module).to(device)
    optimizer, scaler = sgd(model.parameters()), torch.amp.GradScaler(device, init_scale=1024.0)
    for batch in batches:
        optimizer.zero_grad()
        with torch.autocast(device, torch.float16):
            loss = model(batch.to(device)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return [*model.parameters(), torch.tensor(scaler.get_scale())]


def mixed_precision():
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    batches = [torch.randn(4, 8) for _ in range(4)]
    batches[2][0, 0] = float("inf")  # The step is skipped, and the scale is halved.
    got, expected = (trained_in_half(module, batches, device) for device in ("cuda", "cpu"))
    check_same(got, expected)
    assert got[-1] == 512, f"the scale is {got[-1].item()}"


def cuda_graph():
    """Compares steps replayed by a graph with steps of a loop. The step before the capture runs on another stream."""
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    model, batches = copy.deepcopy(module).cuda(), [torch.randn(4, 6) for _ in range(4)]
    optimizer, batch = sgd(model.parameters()), batches[0].cuda()

    def step():
        optimizer.zero_grad()
        model(batch).sin().sum().backward()
        optimizer.step()
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        step()
    for later in batches[1:]:
        batch.copy_(later)
        graph.replay()
    check_same(list(model.parameters()), trained(module, sgd, batches))


FAMILIES = [sparse_embeddings, embeddings, embedding_bags, scaled_dot_product_attention, attention, convolutions,
            batch_norms, recurrent, data_parallel, pipeline, mixed_precision, cuda_graph]


def compare_families(chosen):
    """Returns the number of families, and the families with different results together with the error of each."""
    families, wrong = [family for family in FAMILIES if chosen(family.__name__)], {}
    for family in families:
        torch.manual_seed(0)
        try:
            family()
        except Exception as error:
            wrong[family.__name__] = first_line(error)
    return len(families), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators, modules and families to compare (default: all)")
    names = set(parser.parse_args().names)
    if torch.cuda.device_count() < 2:
        sys.exit("needs two GPUs: run this by sconce-simgpu")
    warnings.simplefilter("ignore")

    def chosen(name):
        return not names or name in names
    operators, modules = compare_operators(chosen), compare_modules(chosen)
    families, wrong_families = compare_families(chosen)
    if not operators.names and not modules.names and not families:
        sys.exit(f"nothing has these names: {' '.join(sorted(names))}")
    print(f"operators: {operators.text()}", f"modules: {modules.text()}",
          f"families: {families}, of which {len(wrong_families)} differ", sep="\n")
    wrong = operators.wrong | modules.wrong | wrong_families
    if wrong:
        sys.exit("\n".join(f"{name}: {error}" for name, error in sorted(wrong.items())))


if __name__ == "__main__":
    main()
