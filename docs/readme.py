#!/usr/bin/env python3
"""Fills in the parts of pages between `<!-- docs/readme.py: NAME -->` and `<!-- end -->`.

    python3 docs/readme.py [--check]

In README.md, these parts are the template's program, the reasons, the figures below the chart, and the GPUs, other
devices, and platforms that sconce works on. In docs/on_a_gpu.md, they are the counts of tests and lessons. With
--check, the script writes nothing and fails if a page is out of date.
"""
import functools
import json
import re
import statistics
import sys
import textwrap

sys.dont_write_bytecode = True
import blocks  # noqa: E402
import counts  # noqa: E402
from blocks import read  # noqa: E402

sys.path.insert(0, str(blocks.ROOT / "apps/bench"))
import tables  # noqa: E402
import times  # noqa: E402
from workloads import EAGER_PYTHON, TORCH_COMPILE  # noqa: E402
EXAMPLES = "apps/examples"


class Speed:
    """The figures in docs/speed.json or docs/speed_gpu.json, formatted for the pages."""

    def __init__(self, text):
        found = json.loads(text)
        self.machine = found["machine"]
        self.results = {(result["name"], result["size"]): result for result in found["results"]}

    def of(self, name, size):
        if (name, size) not in self.results:
            raise ValueError(f"no workload {name} of size {size}")
        return self.results[name, size]

    def seconds(self, name, size, side="sconce"):
        return statistics.median(self.of(name, size)["values"][side])

    def time(self, name, size):
        seconds = self.seconds(name, size)
        unit, name = next(((unit, name) for unit, name in ((1, "s"), (1e-3, "ms")) if seconds >= unit), (1e-6, "µs"))
        return f"{seconds / unit:.2g} {name}" if seconds < 10 * unit else f"{seconds / unit:.0f} {name}"

    def ratio(self, name, size, *sides):
        """Returns the ratio of the time of the fastest of the other sides to sconce's time."""
        least = times.fastest(times.ratios(self.of(name, size)), sides)["median"]
        return f"{least:.1f}" if least < 10 else f"{least:.0f}"

    def where(self):
        return f"With LibTorch {self.machine['torch']} and one thread on an {tables.cpu_name(self.machine)}"


class Sources:
    """The data sources for the parts."""

    def __init__(self):
        self.speed, self.gpu = Speed(read("docs/speed.json")), Speed(read("docs/speed_gpu.json"))
        self.lines = {name: len(read(f"{EXAMPLES}/{name}.cpp").splitlines()) for name in ("mnist", "mnist_plain")}
        self.template = read("apps/template/main.cpp").strip()
        comparisons = read("tests/comparisons.txt").splitlines()
        self.comparisons = sum(1 for line in comparisons if line and not line.startswith("#"))
        self.public_programs = len(re.findall(r"^\| [^|]+ \| [\w-]+/[\w-]+ \|", read("tests/simgpu/public.md"), re.M))
        self.gpu_tests, self.lessons = counts.gpu_tests(), counts.lessons()


def wrapped(text, indent=""):
    return textwrap.fill(text, 122, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def startup_of_the_race(speed):
    """Returns the number of seconds that sconce saves in the race to an accuracy, and how much of that is startup
    time."""
    saved = speed.seconds("race.accuracy:start", 0, "best") - speed.seconds("race.accuracy:start", 0)
    return saved, speed.seconds("steps.sgd:start", 4, "best") - speed.seconds("steps.sgd:start", 4)


def reasons(sources):
    speed, eager = sources.speed, EAGER_PYTHON
    bullets = [
        "**Same names and numbers as Python.** `torch.amp.GradScaler` is `sconce::amp::GradScaler` ([all "
        f"names](docs/python_to_cpp.md)), and {sources.comparisons} tests compare sconce's results with "
        "PyTorch's.",
        f"**Less code.** A program that trains LeNet in bfloat16 is {sources.lines['mnist']} lines long with sconce "
        f"and {sources.lines['mnist_plain']} lines long "
        "[with LibTorch alone](docs/from_libtorch.md#side-by-side-comparison).",
        f"**Faster steps.** {speed.where()}, the fastest eager PyTorch takes "
        f"{speed.ratio('recommend.two_towers', 1_000_000, *eager)} times as long as sconce for a step of a "
        f"recommender with 1 M sparse rows, {speed.ratio('gpt.gpt2', 128, *eager)} times (`torch.compile`: "
        f"{speed.ratio('gpt.gpt2', 128, *TORCH_COMPILE)}) for a step of two GPT-2 blocks, which sconce "
        f"[compiles](docs/compile_a_step.md), and {speed.ratio('recurrent.lstm', 35, *eager)} times for an LSTM step "
        "(mostly kernels).",
        "**GPU debugging without a GPU.** [`sconce-simgpu`](docs/simulated_gpus.md) runs C++ and Python programs on "
        f"GPUs simulated on the CPU and reports races between streams. We ran it on "
        f"[{sources.public_programs} public programs](tests/simgpu/public.md) without modifying them.",
        "**ONNX export.** [`sconce-export --onnx --check`](docs/export.md) exports a network recorded in C++ "
        "and compares ONNX Runtime's outputs with the C++ outputs."]
    return "\n".join(wrapped(f"- {bullet}", "  ") for bullet in bullets)


def speed(sources):
    cpu, gpu = sources.speed, sources.gpu
    saved, startup = startup_of_the_race(cpu)
    eager = cpu.ratio("race.accuracy:start", 0, *EAGER_PYTHON)
    adamw = cpu.ratio("optimizers.adamw_small", 1000, "libtorch")
    default, best = (gpu.ratio("gpu_steps.gpt_bf16", 256, side) for side in EAGER_PYTHON)
    text = (f"{cpu.where()}, a sconce program reaches 87% accuracy on Fashion-MNIST "
            f"{cpu.time('race.accuracy:start', 0)} after the process starts. The fastest eager PyTorch program that we "
            f"could write takes {eager} times as long. Startup accounts for {startup:.1f} s of the {saved:.1f} s "
            f"difference, or {startup / saved:.0%}. `torch::optim::AdamW` takes {adamw} times as "
            "long as `sconce::optim::AdamW` for a step on 1,000 small parameters. For a GPT step in bf16 on an H100 "
            f"with LibTorch {gpu.machine['torch']}, eager PyTorch takes {default} times as long as a captured step in "
            f"sconce. For PyTorch with a CUDA graph, the ratio is {best}. [Speed](docs/speed.md) lists all cases, "
            "including those where sconce is slower.")
    return wrapped(text)


def quick_look(sources):
    return f"```cpp\n{sources.template}\n```"


def where(sources):
    cases, recorded = sources.gpu_tests
    lessons, of_gpus = sources.lessons
    rows = [
        ("CPU", "Everything runs, and tests compare the results with Python's."),
        ("simulated GPUs", "The GPU tests, including captured steps and NCCL, pass on [GPUs simulated on the "
         "CPU](docs/simulated_gpus.md). This verifies placement and synchronization, but not speed or rounding."),
        ("real GPUs", f"sconce has run on an H100 and an H200 with LibTorch 2.11.0. Of the {cases} GPU tests, "
         f"{recorded} have [a recorded pass](docs/on_a_gpu.md) on the H100. Of the {lessons} lessons, {of_gpus} have "
         "recorded output. LibTorch 2.15 on a GPU and runs on several real GPUs have not been tried."),
        ("several machines, Slurm", "Not tried yet. Tests cover several processes on one machine."),
        ("platforms", "sconce runs on Linux on x86-64, built with g++ 12 and 14 and clang 14 and 19. It compiles for "
         "aarch64 but has not been run there. Windows and macOS have not been tried."),
        ("LibTorch", "Versions 2.11.0 to 2.15.0 are supported. The tests run with the oldest and newest versions, "
         "on Debian. The GitHub workflow has not run on GitHub yet."),
    ]
    return "\n".join(["| environment | status |", "| --- | --- |", *(f"| {a} | {b} |" for a, b in rows)])


def gpu_counts(sources):
    cases, recorded = sources.gpu_tests
    lessons, of_gpus = sources.lessons
    return wrapped(f"The project has {cases} test cases with the label `gpu`. The results file of the H100 contains "
                   f"{recorded} of them, some under earlier names, and {cases - recorded} are newer than that file. Of "
                   f"the {lessons} lessons, {of_gpus} have been recorded on a GPU since their last change.")


PAGES = {"README.md": {"quick look": quick_look, "reasons": reasons, "speed": speed, "where": where},
         "docs/on_a_gpu.md": {"counts": gpu_counts}}


def main():
    try:
        sources = Sources()
    except ValueError as error:
        sys.exit(str(error))
    blocks.write("readme.py", {page: {name: functools.partial(made, sources) for name, made in parts.items()}
                               for page, parts in PAGES.items()})


if __name__ == "__main__":
    main()
