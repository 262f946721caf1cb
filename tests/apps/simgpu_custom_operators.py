"""Checks that simulated GPUs run the operators of other libraries that have a CPU kernel.

  cd tests/apps && OMP_NUM_THREADS=1 ../../build/default/bin/sconce-simgpu --hide-real-gpus --races throw -- \\
      python -m unittest simgpu_custom_operators

A GPU is in use before the operators are defined, as in a program that imports a library late.
"""
import itertools
import unittest

import torch

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
NAMES = (f"simgpu_test_{number}" for number in itertools.count())


def no_gpu_kernel(*_):
    raise AssertionError("the CUDA kernel was called")


def define(schema, **kernels):
    """Returns an operator with one kernel for each dispatch key, and its library, which the caller must keep."""
    library = torch.library.Library(next(NAMES), "DEF")
    name = library.define("f" + schema)
    for key, kernel in kernels.items():
        library.impl(name, kernel, key)
    return getattr(torch.ops, library.ns).f, library


class CustomOperators(unittest.TestCase):
    def setUp(self):
        self.values = torch.arange(4.0, device=GPU)

    def assert_on_gpu(self, tensor, expected):
        self.assertEqual(tensor.device, GPU)
        self.assertEqual(tensor.tolist(), expected)

    def test_an_operator_with_kernels_of_the_cpu_and_of_cuda_runs_the_one_of_the_cpu(self):
        def kernel(tensors, optional):
            self.assertTrue(all(tensor.device == CPU for tensor in [*tensors, optional]))
            return torch.cat(tensors) + optional, tensors[1] * 2
        f, _library = define("(Tensor[] a, Tensor? b) -> (Tensor, Tensor)", CPU=kernel, CUDA=no_gpu_kernel)
        total, double = f([self.values, self.values[:2]], self.values[3])
        self.assert_on_gpu(total, [3, 4, 5, 6, 3, 4])
        self.assert_on_gpu(double, [0, 2])

    def test_an_operator_writes_its_argument_on_the_gpu(self):
        f, _library = define("(Tensor(a!) a, int n) -> Tensor(a!)", CPU=lambda a, n: a.mul_(n), CUDA=no_gpu_kernel)
        result = f(self.values[1:3], 5)
        self.assert_on_gpu(self.values, [0, 5, 10, 3])
        self.assertEqual(result.data_ptr(), self.values[1:].data_ptr())

    def test_an_operator_that_has_no_kernel_of_the_cpu_runs_its_kernel_of_cuda(self):
        f, _library = define("(Tensor a) -> Tensor", CUDA=lambda a: a * (2 if a.is_cuda else 0))
        self.assert_on_gpu(f(self.values), [0, 2, 4, 6])

    def test_an_operator_for_all_devices_sees_tensors_of_the_gpu(self):
        for key in ("CompositeExplicitAutograd", "CompositeImplicitAutograd"):
            f, _library = define("(Tensor a) -> Tensor", **{key: lambda a: a * (2 if a.is_cuda else 0)})
            self.assert_on_gpu(f(self.values), [0, 2, 4, 6])
            with torch.inference_mode():
                self.assert_on_gpu(f(torch.ones(1, device=GPU)), [2])

    def test_an_operator_for_all_devices_with_a_kernel_of_cuda_sees_tensors_of_the_cpu(self):
        f, _library = define("(Tensor a) -> Tensor", CompositeExplicitAutograd=lambda a: a * (0 if a.is_cuda else 2),
                             CUDA=no_gpu_kernel)
        self.assert_on_gpu(f(self.values), [0, 2, 4, 6])

    def test_a_kernel_of_the_cpu_alone_is_refused_as_on_a_real_gpu(self):
        f, _library = define("(Tensor a) -> Tensor", CPU=torch.clone)
        with self.assertRaisesRegex(NotImplementedError, "with arguments from the 'CUDA' backend"):
            f(self.values)

    def test_kernels_that_are_registered_after_the_first_call_are_used(self):
        f, library = define("(Tensor a) -> Tensor", CUDA=lambda a: a + 1)
        self.assert_on_gpu(f(self.values), [1, 2, 3, 4])
        library.impl("f", lambda a: a + 2, "CPU")
        self.assert_on_gpu(f(self.values), [2, 3, 4, 5])

    def test_calls_on_the_cpu_and_of_fake_tensors_run_their_own_kernels(self):
        f, _library = define("(Tensor a) -> Tensor", CPU=lambda a: a + 1, CUDA=no_gpu_kernel, Meta=torch.empty_like)
        self.assertEqual(f(torch.ones(2)).tolist(), [2, 2])
        self.assertEqual(f(torch.ones(2, device="meta")).device.type, "meta")
        with torch._subclasses.FakeTensorMode() as mode:
            self.assertEqual(f(mode.from_tensor(self.values)).device, GPU)

    def test_an_operator_of_custom_op_has_its_gradient(self):
        @torch.library.custom_op(next(NAMES) + "::square", mutates_args=(), device_types="cpu")
        def square(a: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(a.numpy() ** 2)
        square.register_kernel("cuda")(no_gpu_kernel)
        square.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0],
                                 setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        leaf = self.values.requires_grad_()
        square(leaf).sum().backward()
        self.assert_on_gpu(leaf.grad, [0, 2, 4, 6])

    def test_a_graph_replays_an_operator(self):
        f, _library = define("(Tensor a) -> Tensor", CPU=lambda a: a + 1, CUDA=no_gpu_kernel)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = f(self.values)
        self.values.fill_(7)
        graph.replay()
        self.assert_on_gpu(result, [8, 8, 8, 8])

    def test_an_operator_may_take_tensors_of_the_cpu_and_return_them(self):
        f, _library = define("(Tensor a, Tensor(b!) b) -> (Tensor, Tensor(b!))",
                             CPU=lambda a, b: (a + b, b.zero_()), CUDA=no_gpu_kernel)
        lengths = torch.ones(4)
        total, same = f(self.values, lengths)
        self.assert_on_gpu(total, [1, 2, 3, 4])
        self.assertEqual((same.device, lengths.tolist()), (CPU, [0, 0, 0, 0]))

    def test_tensors_on_two_gpus_are_refused(self):
        f, _library = define("(Tensor a, Tensor b) -> Tensor", CPU=torch.add, CUDA=no_gpu_kernel)
        with self.assertRaisesRegex(RuntimeError, "at least two devices, cuda:0 and cuda:1"):
            f(self.values, torch.ones(4, device="cuda:1"))

    def test_a_library_may_be_removed_and_defined_again(self):
        for factor in (2, 3):
            with torch.library._scoped_library("simgpu_test_again", "DEF") as library:
                library.define("f(Tensor a) -> Tensor")
                library.impl("f", lambda a, factor=factor: a * factor, "CPU")
                library.impl("f", no_gpu_kernel, "CUDA")
                result = torch.ops.simgpu_test_again.f.default(self.values)
                self.assert_on_gpu(result, [0, factor, 2 * factor, 3 * factor])


if __name__ == "__main__":
    unittest.main()
