#!/usr/bin/env python3
"""Runs the GPU benchmarks on the CPU, and checks that all implementations compute the same numbers and make at least
one call. Also checks what sconce-bench does not measure.

Run it with the Python whose torch package contains the build's LibTorch: bench_gpu_test.py SCONCE_BENCH
"""
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "apps/bench"))
import bench
from workloads import WORKLOADS

PROGRAM = sys.argv.pop()


def of_program(name, size):
    done = subprocess.run([PROGRAM, name, size], input="1\n0\n", text=True, capture_output=True,
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}, check=True)
    check, seconds, most_reserved = done.stdout.splitlines()
    assert float(seconds) > 0 and int(most_reserved) > 0
    return json.loads(check)


def of_python(name, variant, size):
    file, function = name.split(".")
    check, call, wait = getattr(importlib.import_module(file), function)(variant, size)
    call()
    wait()
    return check


class OnTheCpu(unittest.TestCase):
    def test_all_sides_come_to_the_same_numbers(self):
        # On the CPU, TF32 is the same as float32, and bfloat16 steps are slow.
        workloads = [workload for workload in WORKLOADS if workload.gpu and not re.search(r"steps\..*(tf32|bf16)", workload.name)]
        self.assertGreater(len(workloads), 5)
        for workload in workloads:
            size = min(workload.size, 300 if workload.name.startswith("gpu.") else 2)
            names = {workload.twin, workload.libtorch or workload.twin, *(f"{workload.twin}_{form}" for form in workload.forms)}
            checks = [of_program(name, str(size)) for name in names]
            checks += [of_python(workload.twin, variant, size) for variant in ("default", "best")
                       if variant in workload.floors]
            with self.subTest(workload.title, checks=checks):
                self.assertGreater(len(checks), 1)
                self.assertFalse(bench.different(checks, workload.tolerance))

    def test_the_program_refuses_what_it_does_not_know_in_one_line(self):
        for arguments, refusal in ((["conv.nothing"], "expected a workload such as ops.add, got conv.nothing"),
                                   (["ops.add", "4x"], "expected a non-negative size, got 4x"),
                                   (["ops.add", "-1"], "expected a non-negative size, got -1")):
            done = subprocess.run([PROGRAM, *arguments], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (2, f"sconce-bench: {refusal}\n"))

    def test_a_replay_is_not_measured_as_a_compiled_step(self):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([PROGRAM, "steps.sgd_compiled", "4"], text=True, capture_output=True, input="1\n",
                                  env=os.environ | {"XDG_CACHE_HOME": cache, "CXX": "/no/such/compiler"})
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, r"^sconce-bench: .*: the step is replayed instead of compiled: .+\n$")


if __name__ == "__main__":
    unittest.main()
