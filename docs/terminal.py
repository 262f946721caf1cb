#!/usr/bin/env python3
"""Draws docs/demo.svg, which shows a terminal with the demo's output.

    cmake --build --preset default --target demo | python3 docs/terminal.py
"""
import pathlib
import re
import sys
import xml.sax.saxutils

PICTURE = pathlib.Path(__file__).resolve().parent / "demo.svg"
COMMAND = "$ cmake --workflow --preset demo"
CHARACTER, LINE, EDGE, TOP = 7.8, 18, 16, 44  # the width of a character, the height of a line, and the margins
STYLE = ("text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}"
         ".window{fill:#f6f8fa;stroke:#d0d7de}.bar{fill:#d0d7de}.command{font-weight:600}"
         "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.window{fill:#161b22;stroke:#30363d}.bar{fill:#30363d}}")


def shown(output):
    """Returns the lines of the demo itself, keeping only the first two epochs and the last one."""
    lines = re.search(r"^This machine.*?^charts: .*?$", output, re.M | re.S)[0].splitlines()
    epochs = [number for number, line in enumerate(lines) if re.match(r"epoch \d+/", line)]
    return [COMMAND, *lines[:epochs[2]], "...", *lines[epochs[-1]:]] if len(epochs) > 3 else [COMMAND, *lines]


def draw(lines):
    width, height = 2 * EDGE + CHARACTER * max(map(len, lines)), TOP + LINE * len(lines) + EDGE
    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
             'role="img" aria-label="What the demo prints">', "<title>What the demo prints</title>", f"<style>{STYLE}</style>",
             f'<rect class="window" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>']
    drawn += [f'<circle class="bar" cx="{EDGE + 6 + 20 * number}" cy="18" r="6"/>' for number in range(3)]
    for number, line in enumerate(lines):
        kind = ' class="command"' if line == COMMAND else ""
        drawn.append(f'<text x="{EDGE}" y="{TOP + LINE * (number + 0.7):g}"{kind} xml:space="preserve">'
                     f"{xml.sax.saxutils.escape(line)}</text>")
    return "\n".join([*drawn, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(shown(sys.stdin.read())))
