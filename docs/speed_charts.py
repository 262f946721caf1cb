#!/usr/bin/env python3
"""Draws the charts of docs/speed.md and README.md from docs/speed.json.

    python3 docs/speed_charts.py [--check]

With --check, the script writes nothing and fails if a chart does not match this file.
"""
import json
import math
import pathlib
import sys
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "apps/bench"))
sys.dont_write_bytecode = True
import tables  # noqa: E402
import times  # noqa: E402
from workloads import EAGER_PYTHON, QUESTIONS, TORCH_COMPILE  # noqa: E402

# The rows of the README's chart, from a whole process and real models down to a single operator.
CHOSEN = ["process start to first training step", "process start to 0.87 on Fashion-MNIST",
          "GPT-2 small step, two blocks, 128 tokens", "ResNet-50 step, 2 images of 224 x 224",
          "LSTM language model step, 8 x 35 tokens", "recommender step, 1 M sparse rows, 512 pairs",
          "MLP epoch, 6,144 images", "LeNet epoch, 6,144 images", "SimpleNN step, SGD", "SimpleNN step, Adam",
          "bf16 step, scaler and clipping, 64 units", "1,024 JPEG files in batches of 32, by two workers",
          "AdamW, 1,000 parameters of 64 elements", "loading a safetensors file of 256 MiB", "1024 x 1024 matmul"]
# The sides of a chart. For each of them, the fastest of the listed measured sides is drawn.
EAGER = {"typical eager Python": ("default",), "the fastest eager Python": ("best",)}
COMPILED = {"the fastest eager Python": EAGER_PYTHON,
            "the fastest torch.compile": TORCH_COMPILE,
            "JAX, one step": ("jax_step",), "JAX, the whole loop": ("jax_scan",)}
SIDES = {"small": COMPILED, "real": COMPILED, "feeding": EAGER, "files": EAGER, "start": EAGER, "operators": EAGER}

WIDTH, LEFT, RIGHT = 760, 310, 24  # of a chart, its labels, and its margin
# The colors are the same as in sconce's own training charts. They can be distinguished without color vision.
STYLE = ("text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}"
         ".background{fill:#fff}.muted{fill:#59636e}.grid{stroke:#d8dee4}.even{stroke:#59636e}.line{fill:none;stroke-width:2}"
         + "".join(f".f{i}{{fill:{color}}}.s{i}{{stroke:{color}}}"
                   for i, color in enumerate(["#0072b2", "#c04f00", "#00805d", "#a6478a"]))
         + "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.background{fill:#0d1117}.muted{fill:#9198a1}"
         ".grid{stroke:#30363d}.even{stroke:#9198a1}"
         + "".join(f".f{i}{{fill:{color}}}.s{i}{{stroke:{color}}}"
                   for i, color in enumerate(["#56b4e9", "#ff9a52", "#2fc79a", "#e79bc7"])) + "}")
MARKS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-4-4h8v8h-8z", "M0-5L5 0L0 5L-5 0z", "M-5 4L0-5L5 4z"]


def text(x, y, words, more=""):
    return f'<text x="{x:g}" y="{y:g}"{more}>{xml.sax.saxutils.escape(words)}</text>'


def mark(x, y, series):
    return f'<path class="f{series}" transform="translate({x:.1f} {y:.1f})" d="{MARKS[series]}"/>'


def line(x, y, to_x, to_y, css):
    return f'<line class="{css}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def picture(height, title, lines):
    """Returns an SVG image with a background, a title, and the elements in `lines`."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
                      f'height="{height:g}" role="img" aria-label="{xml.sax.saxutils.escape(title)}">',
                      f"<title>{xml.sax.saxutils.escape(title)}</title>", f"<style>{STYLE}</style>",
                      f'<rect class="background" width="{WIDTH}" height="{height:g}"/>',
                      text(16, 26, title, ' class="title"'), *lines, "</svg>", ""])


def ticks(low, high):
    """Returns the round numbers between the two bounds, for use on a logarithmic axis."""
    numbers = [step * 10**power for power in range(-2, 3) for step in (1, 2, 5)]
    return [number for number in numbers if low <= number <= high]


def logarithmic(low, high, begin, end):
    """Returns a function that maps a number to its position on the axis."""
    return lambda value: begin + (end - begin) * math.log(value / low) / math.log(high / low)


def legend(names, y):
    lines, x = [], 16
    for series, name in enumerate(names):
        lines += [mark(x + 6, y - 4, series), text(x + 18, y, name)]
        x += 40 + 7 * len(name)
    return lines


def fastest(result, sides):
    """Returns the ratio to the fastest side in each group of measured sides, indexed by the group's name."""
    ratios = times.ratios(result)
    found = {name: times.fastest(ratios, group) for name, group in sides.items()}
    return {name: ratio for name, ratio in found.items() if ratio}


def rows_chart(title, results, sides):
    """Draws the ratio of each side in each result, with its interval, on a logarithmic axis."""
    of_results = [(result, fastest(result, sides)) for result in results]
    of_results = [(result, ratios) for result, ratios in of_results if ratios]
    sides = [side for side in sides if any(side in ratios for _, ratios in of_results)]
    shown = [ratio for _, ratios in of_results for ratio in ratios.values()]
    low = min(0.9, *(ratio["interval"][0] for ratio in shown)) / 1.1
    high = max(ratio["interval"][1] for ratio in shown) * 1.1
    place = logarithmic(low, high, LEFT, WIDTH - RIGHT)
    row_height = 10 + 8 * len(sides)
    top, bottom = 84, 84 + row_height * len(of_results)
    lines = legend(sides, 50)
    lines += [text(place(1) - 8, 74, "Python faster", ' class="muted" text-anchor="end"'),
              text(place(1) + 8, 74, "sconce faster", ' class="muted"')]
    for tick in ticks(low, high):
        lines += [line(place(tick), top, place(tick), bottom, "even" if tick == 1 else "grid"),
                  text(place(tick), bottom + 18, f"{tick:g}", ' class="muted" text-anchor="middle"')]
    for row, (result, ratios) in enumerate(of_results):
        y = top + row_height * (row + 0.5)
        lines.append(text(LEFT - 12, y + 4, result["title"], ' text-anchor="end"'))
        for series, side in enumerate(sides):
            if side in ratios:
                ratio, at = ratios[side], y + 4 * (2 * series - len(sides) + 1)
                begin, end = map(place, ratio["interval"])
                lines += [line(begin, at, end, at, f"line s{series}"), mark(place(ratio["median"]), at, series)]
    lines.append(text(WIDTH - RIGHT, bottom + 38, "ratio: the other side's time divided by sconce's time",
                      ' class="muted" text-anchor="end"'))
    return picture(bottom + 52, title, lines)


def panel(name, points, left, top, width, height):
    """Draws one row of the growth table as ratios over sizes, with two logarithmic axes."""
    sizes, ratios = zip(*points)
    x = logarithmic(sizes[0], sizes[-1], left + 24, left + width - 24)
    y = logarithmic(0.9, max(ratios) * 1.2, top + height, top)
    lines = [text(left, top - 20, name), line(left, y(1), left + width, y(1), "even"),
             text(left - 6, y(1) + 4, "1", ' class="muted" text-anchor="end"')]
    lines.append(f'<path class="line s0" d="M{" L".join(f"{x(size):.1f} {y(ratio):.1f}" for size, ratio in points)}"/>')
    for size, ratio in points:
        lines += [mark(x(size), y(ratio), 0), text(x(size), y(ratio) - 10, f"{ratio:.2f}", ' text-anchor="middle"'),
                  text(x(size), top + height + 20, f"{size:,}", ' class="muted" text-anchor="middle"')]
    return lines


def growth_chart(title, results):
    lines, width, height = [], 310, 130
    groups = tables.growing(times.paired(results))
    for index, (name, sizes) in enumerate(groups.items()):
        lines += panel(name, [(size, gain) for size, _, gain in sizes], 48 + index % 2 * 370, 84 + index // 2 * 210, width, height)
    bottom = 84 + (len(groups) + 1) // 2 * 210
    lines.append(text(WIDTH - RIGHT, bottom - 22, "ratio to the faster eager Python; 1 means equal times",
                      ' class="muted" text-anchor="end"'))
    return picture(bottom - 6, title, lines)


def charts(results):
    """Returns the text of each chart, indexed by name."""
    paired = times.paired(results)
    known = {workload.title: result for workload, result in paired}
    drawn = {"speed": rows_chart("sconce and eager Python", [known[title] for title in CHOSEN], EAGER),
             "speed_growth": growth_chart("What C++ gains, by workload size", results)}
    for question, sides in SIDES.items():
        of_question = [result for workload, result in paired if workload.question == question]
        drawn[f"speed_{question}"] = rows_chart(f"{QUESTIONS[question]}: sconce and others", of_question, sides)
    return drawn


def main():
    results = json.loads((ROOT / "docs/speed.json").read_text())["results"]
    for name, drawn in charts(results).items():
        file = ROOT / f"docs/{name}.svg"
        if "--check" not in sys.argv[1:]:
            file.write_text(drawn)
        elif not file.exists() or file.read_text() != drawn:
            sys.exit(f"docs/{name}.svg: expected the chart of the measured times. To fix this: python3 docs/speed_charts.py")


if __name__ == "__main__":
    main()
