#!/usr/bin/env python3
"""Compiles each block of docs/compile_errors.md, and looks for the messages that the page shows.

compile_errors.py BUILD  builds the target compile-errors in that folder, which must fail with every message
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREAMBLE = """#include <torch/torch.h>
#include <sconce/sconce.hpp>

struct PointsDataset : torch::data::datasets::Dataset<PointsDataset> {
  torch::data::Example<> get(size_t) override { return {torch::ones({2}), torch::ones({})}; }
  c10::optional<size_t> size() const override { return 40; }
};
const torch::Tensor x = torch::ones({40, 2}), y = torch::ones({40});
const sconce::data::Batches batches({x, y}, {.batch_size = 10});
torch::optim::SGD optimizer(std::vector<torch::Tensor>{x}, 0.1);
"""


def function_of(number, block):
    """Returns a function with the statements of the block. A struct, which may have templates, comes before it."""
    struct, statements = re.fullmatch(r"(struct .*?^\} \w+;\n)?(.*)", block, re.M | re.S).groups()
    return f"namespace block_{number} {{\n{struct or ''}void f() {{\n{statements}}}\n}}\n"


def main():
    build = pathlib.Path(sys.argv[1])
    page = (ROOT / "docs/compile_errors.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```\n\n```\n(.*?)\n```$", page, re.M | re.S)
    source = PREAMBLE + "".join(function_of(i, block) for i, (block, _) in enumerate(blocks))
    (build / "tests/compile_errors.cpp").write_text(source, encoding="utf-8")
    built = subprocess.run(["cmake", "--build", build, "--target", "compile-errors"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    missing = [message for _, message in blocks if message not in built.stdout]
    others = [line for line in re.findall(r"error: .*", built.stdout) if not line.startswith("error: static")]
    if not blocks or built.returncode == 0 or missing or others:
        sys.exit("\n".join(["expected these messages, and no other error:", *missing, "got:", *others, built.stdout]))


if __name__ == "__main__":
    main()
