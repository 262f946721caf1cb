"""Checks that torch.compile runs on simulated GPUs.

  cd tests/apps && OMP_NUM_THREADS=1 ../../build/default/bin/sconce-simgpu --hide-real-gpus --races throw -- \\
      python -m unittest simgpu_compile
"""
import unittest

import torch


class Compile(unittest.TestCase):
    def test_the_default_backend_is_replaced_and_computes_gradients(self):
        def function(values):
            return (values.sin() + 1) * values
        results = []
        for call in (function, torch.compile(function)):
            values = torch.arange(4.0, device="cuda", requires_grad=True)
            output = call(values)
            output.sum().backward()
            results.append((output.tolist(), values.grad.tolist()))
        self.assertEqual(*results)


if __name__ == "__main__":
    unittest.main()
