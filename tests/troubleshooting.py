#!/usr/bin/env python3
"""Provokes messages of docs/troubleshooting.md and compares them with the page: troubleshooting.py BUILD [PYTHON]

BUILD is a build folder with sconce-info. With a PYTHON that has torch, messages from LibTorch are provoked too. A message
whose tool is missing is skipped. The page must contain the characteristic words of each message.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = " ".join((ROOT / "docs/troubleshooting.md").read_text().split())
BUILD = PYTHON = None

OLD_ABI = """#include <string>
namespace c10::detail {
[[noreturn]] void torchCheckFail(const char*, const char*, unsigned, const std::string&);
}
int run() { c10::detail::torchCheckFail("function", "file", 1, std::string("message")); }
"""
TWO_RUNTIMES = """import ctypes
for name in ("{0}", "{1}"):
    ctypes.CDLL(name).omp_get_max_threads()
"""


def said(command, limit=None, **variables):
    """Runs a command and returns its exit code and its output."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=120,
                         env=os.environ | {"OMP_NUM_THREADS": "1"} | variables,
                         preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))
    return ran.returncode, " ".join(ran.stdout.split())


class Messages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, output, words):
        self.assertIn(words, output)
        self.assertIn(words, PAGE)

    def compile(self, text, name, *flags):
        if not shutil.which("g++"):
            self.skipTest("no g++")
        source = self.folder / f"{name}.cpp"
        source.write_text(text)
        subprocess.run(["g++", "-std=c++20", source, "-o", self.folder / name, *flags], check=True)
        return self.folder / name

    def torch_lib(self):
        if not PYTHON:
            self.skipTest("no Python with torch")
        return pathlib.Path(next(pathlib.Path(PYTHON).parents[1].glob("lib/python*/site-packages/torch/lib/libc10.so"))).parent

    def test_a_driver_that_is_too_old(self):
        stand_in = BUILD / "tests/nvml-WHOLE"
        info = BUILD / "bin/sconce-info"
        if not (stand_in.exists() and info.exists()):
            self.skipTest("no stand-in for the driver")
        _, output = said([info], LD_LIBRARY_PATH=f"{stand_in}:{os.environ.get('LD_LIBRARY_PATH', '')}")
        if "a CUDA build" not in output or "no GPU can be used" not in output:
            self.skipTest("a CPU build of LibTorch, or a GPU")
        self.check(output, "the driver 470.1 is too old; it supports CUDA up to 11.4")

    def test_the_old_abi_leaves_an_undefined_symbol(self):
        lib = self.torch_lib()
        self.compile(OLD_ABI, "libabi.so", "-D_GLIBCXX_USE_CXX11_ABI=0", "-shared", "-fPIC")
        program = self.compile("int run();\nint main() { return run(); }\n", "program", f"-L{self.folder}", "-labi",
                               f"-L{lib}", "-Wl,--no-as-needed", "-lc10", "-Wl,--allow-shlib-undefined",
                               f"-Wl,-rpath,{self.folder}:{lib}")
        code, output = said([program])
        self.assertEqual(code, 127)
        self.check(output, "undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs")

    def test_an_older_libstdcxx(self):
        if not shutil.which("g++"):
            self.skipTest("no g++")
        program = self.compile("#include <charconv>\n#include <string>\nint main(int n, char** a) {\n  double value = 0;\n"
                               "  std::from_chars(a[0], a[0] + n, value);\n  return int(value);\n}\n", "program")
        old = self.folder / "old"
        old.mkdir()
        (self.folder / "map").write_text("GLIBCXX_3.4 { global: *; };\n")
        self.compile("int nothing;\n", "old/libstdc++.so.6", "-shared", "-fPIC", "-nostdlib",
                     f"-Wl,--version-script={self.folder / 'map'}", "-Wl,-soname,libstdc++.so.6")
        code, output = said([program], LD_LIBRARY_PATH=str(old))
        self.assertEqual(code, 1)
        self.check(output, "version `GLIBCXX_3.4.29' not found (required by")

    def test_two_copies_of_an_openmp_runtime(self):
        found = sorted(pathlib.Path("/usr/lib").glob("llvm-*/lib/libomp.so.5"))
        if not found:
            self.skipTest("no libomp")
        copy = shutil.copy(found[0], self.folder / "copy.so")
        code, output = said([sys.executable, "-c", TWO_RUNTIMES.format(found[0], copy)])
        self.assertNotEqual(code, 0)
        self.check(output, "OMP: Error #15: Initializing libomp.so.5, but found libomp.so.5 already initialized.")

    def test_a_killed_program_has_exit_code_137(self):
        code, output = said(["bash", "-c", "bash -c 'kill -KILL $$'; echo exit $?"])
        self.check(output, "Killed")
        self.assertIn("exit 137", output)
        self.assertIn("137", PAGE)

    def test_a_simulated_gpu_runs_out_of_memory(self):
        simgpu = BUILD / "bin/sconce-simgpu"
        if not (PYTHON and simgpu.exists()):
            self.skipTest("no sconce-simgpu, or no Python with torch")
        _, output = said([simgpu, "--hide-real-gpus", "--gpus", "1", "--memory", "8GiB", "--", PYTHON, "-c",
                          "import torch; torch.empty(9 << 30, dtype=torch.uint8, device='cuda')"])
        self.check(output, "CUDA out of memory. Tried to allocate")
        self.check(output, "GPU 0 has a total capacity of 8.00 GiB of which")

    def test_the_cpu_refuses_a_tensor(self):
        if not PYTHON:
            self.skipTest("no Python with torch")
        _, output = said([PYTHON, "-c", "import torch; torch.empty(1 << 50, dtype=torch.uint8)"])
        self.check(output, "DefaultCPUAllocator: can't allocate memory: you tried to allocate")

    def test_an_operator_without_a_deterministic_algorithm(self):
        if not PYTHON:
            self.skipTest("no Python with torch")
        _, output = said([PYTHON, "-c", "import torch; torch.use_deterministic_algorithms(True); "
                          "torch.zeros(3).put_(torch.tensor([1]), torch.ones(1))"])
        self.check(output, "put_ does not have a deterministic implementation, but you set")


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    PYTHON = sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
