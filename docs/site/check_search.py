#!/usr/bin/env python3
"""Checks the site's search: check_search.py HTML

Runs the site's own search JavaScript on the site's index. For each query below, the specified page must be the first
result. The pages described in search.js must exist.
"""

import pathlib
import sys

import quickjs

QUERIES = {
    # Queries for tasks and names.
    "save model": "docs/files_and_checkpoints",
    "resume training": "docs/recipes",
    "GradScaler": "docs/mixed_precision",
    "mixed precision": "docs/mixed_precision",
    "learning rate schedule": "docs/recipes",
    "multiple gpus": "docs/several_devices",
    "docker": "docs/ship_a_program",
    "windows": "docs/limits",
    "csv": "docs/own_data",
    "onnx": "docs/export",
    # Queries for error messages from LibTorch, the system, sconce-info, a compiler, and sconce.
    "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.64 GiB": "docs/troubleshooting",
    "cumsum_cuda_kernel does not have a deterministic implementation, but you set"
    " 'torch.use_deterministic_algorithms(True)'": "docs/troubleshooting",
    "/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found": "docs/troubleshooting",
    "no GPU can be used: the driver 550.54 is too old; it supports CUDA up to 12.4, LibTorch needs CUDA 13.2":
        "docs/troubleshooting",
    "static assertion failed: sconce::FitData: expected the validation data as .test": "docs/compile_errors",
    "sconce::program::record: aten::dropout: expected no random numbers, got an operator that generates random"
    " numbers; call eval() on the network, run lazy layers once before recording, or pass the random numbers as an input":
        "reference/errors",
    "sconce::amp::GradScaler::update: expected unscale_ or step to have checked gradients for inf since the last update":
        "reference/errors",
    "sconce::Trainer: expected num_gpus 0 or 1 (a Trainer uses one device), got 2": "reference/errors",
    "sconce::io::load_safetensors: runs/best.safetensors: expected a header of 5417 bytes, found a file of 1024":
        "reference/errors",
    "sconce::data::Stack: expected tensors of the same size, got [3, 32, 32] in item 0 of the batch and [1, 28, 28] in "
    "item 7; sconce::data::PadSequence pads shorter tensors": "reference/errors",
}

# The parts of the browser API that the scripts use before they display a result.
BROWSER = """
var window = globalThis, SPHINX_HIGHLIGHT_ENABLED = false;
var document = {getElementById: () => null}, _ready = () => {}, _ = text => text;
"""
MISSING = "Object.keys(keywords).filter((page) => !Search._index.docnames.includes(page)).join(', ')"
FIRST = """
(query) => {
  const best = Search._performSearch(...Search._parseQuery(query)).pop();
  return best ? best[0] + best[2] : "no page";
}
"""


def search_of(folder):
    """Returns a JavaScript context that contains the site's search code and index."""
    context = quickjs.Context()
    context.eval(BROWSER)
    # The scripts are in the same order as in search.html.
    for script in ("_static/searchtools.js", "_static/language_data.js", "searchindex.js"):
        context.eval((folder / script).read_text())
    return context


def main(folder):
    search = search_of(folder)
    if missing := search.eval(MISSING):
        sys.exit(f"search.js: expected pages that exist on the site, got {missing}")
    first = search.eval(FIRST)  # returns the best result: a page, with or without an anchor
    problems = [f"'{query}': expected {page} first, got {place}" for query, page in QUERIES.items()
                if (place := first(query)).partition("#")[0] != page]
    if problems:
        sys.exit("\n".join([f"check_search.py found problems, with {len(QUERIES)} queries:", *problems]))
    print(f"{len(QUERIES)} queries find the right page first")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
