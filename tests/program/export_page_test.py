#!/usr/bin/env python3
"""Runs the commands of docs/export.md in a new folder with a build's programs, and compares their files and output.

    export_page_test.py BUILD [--packages]

Run with a Python that has PyTorch and, on PYTHONPATH, ONNX and ONNX Runtime. Commands that compile a package run only with
--packages.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/export.md").read_text()
OPTIONS = None


def commands():
    """Returns the lines of the shell blocks that run a program, with the paths of the build and of this Python."""
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)).splitlines()
    places = {"build/default": shlex.quote(str(OPTIONS.build)), "python apps/examples":
              f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'apps/examples'))}"}
    for line in lines:
        if line.startswith("cmake ") or ("package" in line and not OPTIONS.packages):
            continue
        for words, place in places.items():
            line = line.replace(words, place)
        yield line


class Page(unittest.TestCase):
    def test_the_commands_run_and_serve_equal_outputs(self):
        printed, outputs = "", []
        with tempfile.TemporaryDirectory() as folder:
            for command in commands():
                ran = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stderr}")
                printed += ran.stdout
                written = pathlib.Path(folder, "outputs.pt")
                if written.exists():
                    outputs.append(torch.load(written))
                    written.unlink()
        self.assertEqual(len(outputs), 4 if OPTIONS.packages else 3)
        for output in outputs:
            self.assertEqual(output.shape, (360, 10))
            torch.testing.assert_close(output, outputs[0], rtol=1e-5, atol=1e-5)
        number = r"\\d+(\\.\\d+)?(e-\\d+)?"
        shown = re.search(r"^```text\n(wrote .*?)^```$", PAGE, re.M | re.S)[1]
        self.assertRegex(printed, re.sub(r"\d+(\\\.\d+)?(e\\-\d+)?", number, re.escape(shown)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--packages", action="store_true")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
