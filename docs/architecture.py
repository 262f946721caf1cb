#!/usr/bin/env python3
"""Draws docs/architecture.svg from the lists of layers in src/CMakeLists.txt and in the CMake files of its subfolders.

    python3 docs/architecture.py [--check]

With --check, the script writes nothing and fails if the drawing does not match the lists.
"""
import pathlib
import re
import sys
import textwrap
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/architecture.svg"
WIDTH, HEIGHT, GAP, LINE = 210, 96, 40, 16  # of a box, of the space between boxes, and of a line of text


def layers():
    """Returns the name of each layer, in order, with its description and the layers that it links to."""
    order = re.search(r"foreach\(layer IN ITEMS ([a-z ]+)\)", (ROOT / "CMakeLists.txt").read_text())[1].split()
    found = {}
    for name in ["core", *order]:
        text = (ROOT / "src" / ("" if name == "core" else name) / "CMakeLists.txt").read_text()
        about = re.match(rf"# The {name} layer (?:contains )?(.*?)\. It depends", text.replace("\n# ", " "))[1]
        found[name] = about, [below for below in re.findall(r"sconce::([a-z]+)", text) if below in found]
    return found


def rows(found):
    """Returns the layers, grouped by the length of their longest path to core."""
    depth = {}
    for name, (_, below) in found.items():
        depth[name] = 1 + max((depth[other] for other in below), default=-1)
    return [[name for name in found if depth[name] == row] for row in range(max(depth.values()) + 1)]


def draw(found):
    levels = rows(found)
    columns = max(len(level) for level in levels)
    width, height = columns * (WIDTH + GAP) + GAP, len(levels) * (HEIGHT + GAP) + GAP
    place = {}
    for row, level in enumerate(levels):
        left = (width - len(level) * (WIDTH + GAP) + GAP) / 2
        for column, name in enumerate(level):
            place[name] = left + column * (WIDTH + GAP), height - (row + 1) * (HEIGHT + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
             "<title>The layers of sconce: an arrow points from a layer to a layer that it includes</title>",
             '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
             '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>']
    for name, (_, below) in found.items():
        for other in below:
            (x, y), (to_x, to_y) = place[name], place[other]
            lines.append(f'<line x1="{x + WIDTH / 2:g}" y1="{y + HEIGHT:g}" x2="{to_x + WIDTH / 2:g}" y2="{to_y:g}" '
                         'stroke="#888" stroke-width="1.5" marker-end="url(#end)"/>')
    for name, (about, _) in found.items():
        x, y = place[name]
        lines.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f4f6fb" stroke="#4269d0"/>')
        lines.append(f'<text x="{x + 12:g}" y="{y + 24:g}" font-size="16" font-weight="bold" fill="#222">{name}</text>')
        for i, text in enumerate(textwrap.wrap(about, 30)):
            lines.append(f'<text x="{x + 12:g}" y="{y + 46 + i * LINE:g}" font-size="12" fill="#222">'
                         f"{xml.sax.saxutils.escape(text)}</text>")
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    drawn = draw(layers())
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn)
    elif not PICTURE.exists() or PICTURE.read_text() != drawn:
        sys.exit("docs/architecture.svg: expected the picture of the lists in src. To fix this: python3 docs/architecture.py")
