"""Compares scaled_dot_product_attention on simulated GPUs with its steps on the CPU, for each fused kernel.

  cd tests/apps && OMP_NUM_THREADS=1 ../../build/default/bin/sconce-simgpu --hide-real-gpus --races throw -- \\
      python -m unittest simgpu_attention
"""
import itertools
import unittest
import warnings

import torch
from torch.nested import nested_tensor_from_jagged
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

FLASH, EFFICIENT, CUDNN = SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION
OPERATORS = {FLASH: "flash", EFFICIENT: "efficient", CUDNN: "cudnn"}
TOLERANCES = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def make(*sizes, dtype=torch.float32):
    return torch.randn(sizes).to(dtype)


def inputs(*, batch=2, heads=4, key_heads=None, length=7, key_length=None, dim=16, value_dim=None, **options):
    key_sizes = (batch, key_heads or heads, key_length or length)
    return [make(batch, heads, length, dim, **options), make(*key_sizes, dim, **options),
            make(*key_sizes, value_dim or dim, **options)]


def attend(tensors, weights=None, mask=None, **options):
    """Returns the output, and the gradients of its weighted sum with respect to the tensors and the mask."""
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    wants_mask = mask is not None and mask.requires_grad
    if wants_mask:
        mask = mask.detach().requires_grad_()
    output = scaled_dot_product_attention(*leaves, attn_mask=mask, **options)
    (output * (1 if weights is None else weights)).sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves), *([mask.grad] if wants_mask else [])]


def expected(tensors, weights=None, mask=None, **options):
    """Returns the same results, computed step by step in float64 on the CPU."""
    wide = [tensor.double() for tensor in tensors]
    with sdpa_kernel(SDPBackend.MATH):
        return attend(wide, None if weights is None else weights.double(),
                      mask if mask is None or mask.dtype == torch.bool else mask.double(), **options)


def on_gpu(value):
    return value.cuda() if isinstance(value, torch.Tensor) else [on_gpu(each) for each in value]


class Operators(TorchDispatchMode):
    """Records the names of the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.name())
        return func(*args, **kwargs or {})


class Attention(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        # LibTorch warns about the reasons why it does not choose a kernel that the switches exclude.
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def check(self, backend, tensors, mask=None, **options):
        weights = make(*tensors[0].shape[:3], tensors[2].shape[3], dtype=tensors[0].dtype)
        wanted = expected(tensors, weights, mask, **options)
        with sdpa_kernel(backend):
            got = attend(on_gpu(tensors), weights.cuda(), None if mask is None else on_gpu(mask), **options)
        self.assertEqual(len(got), len(wanted))
        bound = TOLERANCES[tensors[0].dtype]
        for ours, theirs in zip(got, wanted):
            self.assertTrue(ours.is_cuda)
            torch.testing.assert_close(ours.cpu().double(), theirs.double(), rtol=bound, atol=4 * bound)

    def test_each_kernel_computes_the_output_and_gradients_of_the_steps(self):
        for backend, dtype, is_causal in itertools.product(OPERATORS, TOLERANCES, (False, True)):
            if backend is not EFFICIENT and dtype is torch.float32:
                continue
            with self.subTest(backend=backend, dtype=dtype, is_causal=is_causal):
                self.check(backend, inputs(dtype=dtype), is_causal=is_causal)

    def test_sizes_that_a_kernel_pads_and_a_custom_scale(self):
        for backend, dim in ((FLASH, 5), (FLASH, 80), (EFFICIENT, 24), (EFFICIENT, 80)):
            with self.subTest(backend=backend, dim=dim):
                dtype = torch.float16 if backend is FLASH else torch.float32
                self.check(backend, inputs(dim=dim, length=33, key_length=65, dtype=dtype), scale=0.3)

    def test_fewer_heads_of_the_key_and_a_value_with_another_dim(self):
        self.check(FLASH, inputs(key_heads=2, dtype=torch.bfloat16), enable_gqa=True)
        self.check(EFFICIENT, inputs(value_dim=8))
        self.check(EFFICIENT, inputs(value_dim=8, length=4, key_length=9), is_causal=True)

    def test_masks_and_their_gradients(self):
        for backend, dtype in ((EFFICIENT, torch.float32), (EFFICIENT, torch.bfloat16), (CUDNN, torch.float16)):
            with self.subTest(backend=backend, dtype=dtype):
                tensors = inputs(length=8, dtype=dtype)
                self.check(backend, tensors, mask=make(8, 8) > -1)
                self.check(backend, tensors, mask=make(2, 1, 8, 8, dtype=dtype))
        self.check(EFFICIENT, inputs(length=8), mask=make(1, 4, 8, 8).requires_grad_())

    def test_a_row_that_sees_nothing_is_zero(self):
        mask = torch.ones(8, 8, dtype=torch.bool, device="cuda")
        mask[2] = False
        with sdpa_kernel(EFFICIENT):
            for options in ({}, {"dropout_p": 0.5}):
                output = scaled_dot_product_attention(*on_gpu(inputs(length=8)), attn_mask=mask, **options)
                self.assertEqual(output[:, :, 2].abs().sum().item(), 0)
                self.assertTrue(output.isfinite().all().item())

    def test_dropout_keeps_weights_at_its_rate_and_the_gradient_uses_the_same_ones(self):
        for backend in OPERATORS:
            with self.subTest(backend=backend), sdpa_kernel(backend):
                query, key, _ = on_gpu(inputs(length=64, dim=64, dtype=torch.float16))
                value = torch.eye(64, dtype=torch.float16, device="cuda").expand(2, 4, 64, 64).clone().requires_grad_()
                output = scaled_dot_product_attention(query * 0, key, value, dropout_p=0.25)
                kept = output != 0  # all weights are equal
                self.assertAlmostEqual(kept.float().mean().item(), 0.75, delta=0.02)
                torch.testing.assert_close(output.max().item(), 1 / 64 / 0.75, rtol=1e-2, atol=0)
                output.sum().backward()
                torch.testing.assert_close(value.grad[..., 0], output.detach().sum(2), rtol=1e-2, atol=1e-2)

    def test_dropout_repeats_by_the_seed_and_differs_between_calls_and_replays(self):
        tensors = on_gpu(inputs())

        def draw():
            return scaled_dot_product_attention(*tensors, dropout_p=0.5)
        torch.manual_seed(5)
        first, second = draw(), draw()
        torch.manual_seed(5)
        self.assertTrue(torch.equal(draw(), first))
        self.assertFalse(torch.equal(first, second))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            drawn = draw()
        replays = []
        for _ in range(2):
            graph.replay()
            replays.append(drawn.clone())
        self.assertFalse(torch.equal(*replays))

    def test_attention_without_dropout_draws_no_random_numbers(self):
        for backend in OPERATORS:
            with self.subTest(backend=backend), sdpa_kernel(backend):
                before = torch.cuda.get_rng_state()
                attend(on_gpu(inputs(dtype=torch.float16)))
                self.assertTrue(torch.equal(torch.cuda.get_rng_state(), before))

    def test_the_usual_choice_and_the_switches_select_the_operator(self):
        def operator(dtype, *backends, **options):
            tensors = on_gpu(inputs(dtype=dtype))
            with sdpa_kernel(list(backends) or [*OPERATORS, SDPBackend.MATH]), Operators() as ran:
                scaled_dot_product_attention(*tensors, **options)
            fused = "aten::_scaled_dot_product_{}_attention"
            return [name for name in OPERATORS.values() if fused.format(name) in ran.names]
        self.assertEqual(operator(torch.float16), ["flash"])
        self.assertEqual(operator(torch.float32), ["efficient"])
        self.assertEqual(operator(torch.float64), [])
        self.assertEqual(operator(torch.float32, FLASH, SDPBackend.MATH), [])
        self.assertEqual(operator(torch.float16, SDPBackend.MATH), [])
        self.assertEqual(operator(torch.float16, CUDNN), ["cudnn"])
        with self.assertRaisesRegex(RuntimeError, "No available kernel"):
            operator(torch.float32, FLASH)

    def check_sequences(self, attend_sequences, lengths, heads, options, dtype):
        """Compares attention over sequences of these lengths, packed into one row, with separate steps for each
        sequence."""
        packed = [make(sum(lengths), count, 16, dtype=dtype).requires_grad_() for count in heads]
        ours = [tensor.detach().cuda().requires_grad_() for tensor in packed]
        parts = []
        for part in zip(*(tensor.double().split(lengths) for tensor in packed)):
            with sdpa_kernel(SDPBackend.MATH):
                part = scaled_dot_product_attention(*(each.transpose(0, 1).unsqueeze(0) for each in part),
                                                    enable_gqa=True, **options(len(part[0])))
            parts.append(part.squeeze(0).transpose(0, 1))
        theirs, weights = torch.cat(parts), make(sum(lengths), heads[0], 16, dtype=dtype)
        (theirs * weights).sum().backward()
        output = attend_sequences(ours)
        (output * weights.cuda()).sum().backward()
        for our, their in zip([output, *(each.grad for each in ours)], [theirs, *(each.grad for each in packed)]):
            bound = TOLERANCES[dtype]
            torch.testing.assert_close(our.cpu().double(), their.double(), rtol=bound, atol=4 * bound)

    def test_varlen_attn_attends_within_each_sequence_and_its_window(self):
        lengths = [3, 9, 1]
        starts = torch.tensor([0, 3, 12, 13], dtype=torch.int32, device="cuda")
        for left, right in ((-1, -1), (-1, 0), (2, 0), (1, 3)):
            def window(length, left=left, right=right):
                distance = torch.arange(length) - torch.arange(length).unsqueeze(1)
                mask = (distance >= -left if left >= 0 else distance == distance) & (right < 0 or distance <= right)
                return {"attn_mask": mask}

            def varlen(tensors, left=left, right=right):
                return varlen_attn(*tensors, starts, starts, 9, 9, window_size=(left, right), enable_gqa=True)
            with self.subTest(left=left, right=right):
                self.check_sequences(varlen, lengths, (4, 2, 2), window, torch.float16)

    def test_nested_tensors_attend_within_each_sequence(self):
        lengths = [3, 9, 1]
        starts = torch.tensor([0, 3, 12, 13], device="cuda")
        for dtype, is_causal in itertools.product((torch.float32, torch.float16), (False, True)):
            def nested(tensors, is_causal=is_causal):
                of_heads = [nested_tensor_from_jagged(tensor, starts).transpose(1, 2) for tensor in tensors]
                return scaled_dot_product_attention(*of_heads, is_causal=is_causal).transpose(1, 2).values()
            with self.subTest(dtype=dtype, is_causal=is_causal):
                options = {"is_causal": is_causal}
                self.check_sequences(nested, lengths, (4, 4, 4), lambda _, options=options: options, dtype)

    def test_float32_attention_equals_that_of_the_cpu_bit_for_bit(self):
        tensors = inputs(length=20)
        for options in ({}, {"is_causal": True}, {"mask": make(20, 20)}):
            theirs = attend(tensors, **options)
            ours = attend(on_gpu(tensors), **{name: on_gpu(value) if name == "mask" else value
                                              for name, value in options.items()})
            self.assertTrue(all(torch.equal(our.cpu(), their) for our, their in zip(ours, theirs)))


if __name__ == "__main__":
    unittest.main()
