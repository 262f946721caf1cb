#!/usr/bin/env python3
"""Exports the programs in a folder, and compares their results with the results of the networks in C++.

  compare_exported.py FOLDER [--onnx NAME,...|all] [--package NAME,...|all] [--path PACKAGES]

NAME.program is a program. NAME.expected contains the inputs, outputs, and tolerances for several batch sizes. Packages
are written to NAME.pt2, for C++ to run. The file `refused` contains a line for each rejected export: NAME, the kind
(exported, onnx, or package), and the reason, separated by tabs.
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "apps/export"))

import torch

from sconce_cpp import load_program, written_files
from sconce_cpp.program_file import read_program


def tensors(expected, rows, kind):
    count = sum(name.startswith(f"{rows}.{kind}.") for name in expected)
    return [expected[f"{rows}.{kind}.{index}"] for index in range(count)]


def largest_share(expected, run, device):
    """Returns the largest difference at any batch size as a fraction of its tolerance."""
    shares = [0]
    for rows in sorted({int(name.split(".")[0]) for name in expected}):
        outputs = run(*[tensor.clone().to(device) for tensor in tensors(expected, rows, "inputs")])
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        tolerances = expected[f"{rows}.tolerances"].tolist()
        for output, right, tolerance in zip(outputs, tensors(expected, rows, "outputs"), tolerances, strict=True):
            shares.append(share_of(output, right, tolerance))
    return max(shares)


def share_of(output, right, tolerance):
    if output.shape != right.shape:
        return float("inf")
    difference = (output.cpu().double() - right.double()).abs().nan_to_num(float("inf"))
    largest = difference.max().item() if difference.numel() else 0
    return largest / tolerance if largest else 0


def exported(program, file):
    return load_program(file).module()


def onnx(program, file):
    model = file.with_suffix(".onnx")
    written_files.write_onnx(program, model)
    return lambda *inputs: written_files.run_onnx(program, model, inputs)


def package(program, file):
    written_files.write_package(program, file.with_suffix(".pt2"))
    return None


def compare(file, make):
    """Prints the result. Returns whether it is correct, and the reason for a rejection or None."""
    start = time.process_time()
    try:
        program = read_program(file)
        run = make(program, file)
        with torch.no_grad():
            share = largest_share(torch.load(file.with_suffix(".expected")), run, program.device) if run else 0
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"{file.stem} {make.__name__}: {reason}")
        return True, reason
    print(f"{file.stem} {make.__name__}: {share:.2g} of the tolerance, {time.process_time() - start:.1f} s")
    return share <= 1, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for kind in ("onnx", "package"):
        parser.add_argument(f"--{kind}", default="", type=lambda names: names.split(","))
    parser.add_argument("--path", default="", help="a folder with the packages onnx, onnxscript and onnxruntime")
    options = parser.parse_args()
    sys.path.append(options.path)
    wrong, refused = [], []
    for file in sorted(options.folder.glob("*.program")):
        makes = [exported] + [make for make in (onnx, package)
                              if {file.stem, "all"} & set(getattr(options, make.__name__))]
        for make in makes:
            right, reason = compare(file, make)
            if not right:
                wrong.append(file.stem)
            if reason is not None:
                refused.append(f"{file.stem}\t{make.__name__}\t{reason}\n")
    (options.folder / "refused").write_text("".join(refused))
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
