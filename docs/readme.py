#!/usr/bin/env python3
"""Fills the parts of README.md that stand between `<!-- docs/readme.py: NAME -->` and `<!-- end -->`.

    python3 docs/readme.py [--check]

The figures come from docs/speed.json and docs/speed_gpu.json, the programs and their line counts from apps/examples/mnist.cpp and
mnist_plain.cpp. With --check it writes nothing, and fails if the README differs.
"""
import itertools
import json
import pathlib
import re
import statistics
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = "apps/examples"
LAST_COMMON_LINE = "torch::optim::SGD sgd("  # the two programs differ in what follows


class Speed:
    """The figures of docs/speed.json or docs/speed_gpu.json, as the README writes them."""

    def __init__(self, text):
        found = json.loads(text)
        self.machine = found["machine"]
        self.results = {(result["name"], result["size"]): result for result in found["results"]}

    def of(self, name, size):
        if (name, size) not in self.results:
            raise ValueError(f"no workload {name} of size {size}")
        return self.results[name, size]

    def time(self, name, size):
        seconds = statistics.median(self.of(name, size)["values"]["sconce"])
        unit, name = next(((unit, name) for unit, name in ((1, "s"), (1e-3, "ms")) if seconds >= unit), (1e-6, "µs"))
        return f"{seconds / unit:.2g} {name}" if seconds < 10 * unit else f"{seconds / unit:.0f} {name}"

    def ratio(self, name, size, *sides):
        """Returns how many times as long the fastest of the other sides takes."""
        least = min(self.of(name, size)["ratios"][side]["median"] for side in sides)
        return f"{least:.1f}" if least < 10 else f"{least:.0f}"


def lines_of(program):
    return len(program.splitlines())


def core_of(program):
    """Returns what follows the optimizer in `main`, without its indentation."""
    _, found, rest = program.partition(LAST_COMMON_LINE)
    if not found:
        raise ValueError(f"{EXAMPLES}: expected a line with '{LAST_COMMON_LINE}' in both programs")
    body = re.split("^}", rest.partition("\n")[2], maxsplit=1, flags=re.M)[0]  # up to the end of `main`
    return textwrap.dedent(body.strip("\n"))


def wrapped(text, indent=""):
    return textwrap.fill(text, 122, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def reasons(speed, gpu, ours, plain):
    eager = ("default", "best")
    cpu = re.sub(r"\(R\)|\(TM\)| Processor", "", speed.machine["cpu"])
    bullets = [
        f"**Less waiting than in Python.** sconce reaches 87 % on Fashion-MNIST {speed.time('race.accuracy:start', 0)} after "
        f"process start; the fastest eager PyTorch we could write takes {speed.ratio('race.accuracy:start', 0, *eager)} times "
        f"as long. Small training steps gain most: {speed.ratio('steps.sgd', 4, *eager)} times with 4 rows, "
        f"{speed.ratio('steps.sgd', 262144, *eager)} with 262,144.",
        f"**No idle GPU.** On [an H100](docs/on_a_gpu.md), with LibTorch {gpu.machine['torch']}, eager PyTorch takes "
        f"{gpu.ratio('gpu_steps.gpt_bf16_captured', 256, 'default')} times as long as a captured GPT step in bf16, and PyTorch "
        f"with a CUDA graph as long. Here it takes one option.",
        f"**Less code than LibTorch alone.** The MNIST program excerpted below has {lines_of(ours)} lines with sconce, "
        f"{lines_of(plain)} without.",
        f"**Faster than LibTorch alone.** AdamW steps 1,000 small parameters in "
        f"{speed.time('optimizers.adamw_small', 1000)}, `torch::optim::AdamW` in "
        f"{speed.ratio('optimizers.adamw_small', 1000, 'libtorch')} times that.",
        "**Agents inside a C++ simulator.** An agent that [learns to balance a pole](apps/examples/README.md#the-cart-pole) makes "
        "2.1 times as many steps per second as the same program in Python, with one thread on an AMD EPYC."]
    source = (f"Without a GPU: LibTorch {speed.machine['torch']}, one thread, {cpu}. [Speed](docs/speed.md) has every figure, the losses "
              "first.")
    return "\n".join([*(wrapped(f"- {bullet}", "  ") for bullet in bullets), "", wrapped(source)])


def programs(_speed, _gpu, ours, plain):
    return f"""\
With sconce:
```cpp
{core_of(ours)}
```

With LibTorch alone:
```cpp
{core_of(plain)}
```"""


PARTS = {"reasons": reasons, "programs": programs}


def filled(text, speed, gpu, ours, plain):
    """Returns the README's text with its parts filled; raises ValueError if it lacks one."""
    for name, part in PARTS.items():
        begin, end = f"<!-- docs/readme.py: {name} -->\n", "\n<!-- end -->"
        before, found, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found or not found_end:
            raise ValueError(f"README.md: expected '{begin.strip()}' and '{end.strip()}' after it")
        text = before + begin + part(Speed(speed), Speed(gpu), ours, plain) + end + after
    return text


def main():
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    names = ("docs/speed.json", "docs/speed_gpu.json", f"{EXAMPLES}/mnist.cpp", f"{EXAMPLES}/mnist_plain.cpp")
    sources = [ROOT / name for name in names]
    try:
        made = filled(text, *(source.read_text(encoding="utf-8") for source in sources))
    except ValueError as error:
        sys.exit(str(error))
    if "--check" not in sys.argv[1:]:
        readme.write_text(made, encoding="utf-8")
    elif made != text:
        lines = itertools.zip_longest(made.splitlines(), text.splitlines())
        expected, got = next(pair for pair in lines if pair[0] != pair[1])
        sys.exit(f"README.md: expected '{expected}', got '{got}'. To fix this: python3 docs/readme.py")


if __name__ == "__main__":
    main()
