#!/usr/bin/env python3
"""Builds the programs of docs/recipes.md and docs/site/ten_lines.cpp as one, runs them, and compares their output.

recipes.py BUILD           builds the target recipes of that folder and runs each program in its own folder
recipes.py BUILD --write   writes the output of the programs into the page

The output of a program must equal the block that follows it, except for numbers with a decimal point. If a command
follows, the program runs again: as two processes after `torchrun`, or on two simulated GPUs after `sconce-simgpu`, if the
build has them.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, TEN_LINES = ROOT / "docs/recipes.md", ROOT / "docs/site/ten_lines.cpp"
INCLUDE = re.compile(r"^#include <[^>]+>\n", re.M)
# A program and its output, optionally followed by a command and its output.
RECIPE = re.compile(r"^## (?P<title>.*?)\n(?:(?!^## ).)*?^```cpp\n(?P<code>.*?)^```\n(?P<more>.*?)(?=^## |\Z)", re.M | re.S)
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```\n", re.M | re.S)
VARYING = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]\d+|(?<=epoch: )\d+|(?<=after epoch )\d+")

Recipe = collections.namedtuple("Recipe", "name line code command printed")


def recipes(page):
    """Returns the programs on the page with the blocks that show their outputs."""
    found = []
    for match in RECIPE.finditer(page):
        name = re.sub(r"\W+", "_", match["title"].lower())
        blocks = [(block["kind"], block["text"]) for block in BLOCK.finditer(match["more"])]
        command = next((text for kind, text in blocks if kind == "sh"), "")
        printed = [text for kind, text in blocks if not kind]
        line = page.count("\n", 0, match.start("code")) + 1
        found.append(Recipe(name, line, match["code"], command, printed))
    return found


def source(found):
    """Returns one source with all programs, each in a separate namespace. `main` calls the programs that are passed by
    name."""
    ten_lines = TEN_LINES.read_text(encoding="utf-8")

    def without_includes(code):
        return INCLUDE.sub("//\n", code)  # the line numbers stay the same

    parts = {recipe.name: (recipe.code, PAGE, recipe.line, "main") for recipe in found}
    for match in re.finditer(r"^void (\w+)\(\) \{$", ten_lines, re.M):
        parts[f"ten_lines_{match[1]}"] = ("", TEN_LINES, 1, f"of_page::{match[1]}")
    includes = dict.fromkeys(INCLUDE.findall("".join(code for code, *_ in parts.values()) + ten_lines))
    text = "".join(includes) + "#include <map>\n#include <string>\n"
    text += f'namespace of_page {{\n#line 1 "{TEN_LINES}"\n{without_includes(ten_lines)}}}\n'
    calls = ""
    for name, (code, file, line, function) in parts.items():
        if code:
            code = without_includes(code).replace("int main() {", "void run() {")
            text += f'namespace {name} {{\n#line {line} "{file}"\n{code}}}\n'
            function = f"{name}::run"
        calls += f'      {{"{name}", {function}}},\n'
    return text + f"""#line 1 "recipes_main"
int main(int argc, char** argv) try {{
  const std::map<std::string, void (*)()> programs = {{
{calls}  }};
  for (int i = 1; i < argc; ++i) {{
    if (argc > 2) std::cout << "== " << argv[i] << std::endl;
    programs.at(argv[i])();
  }}
}} catch (const std::exception& error) {{
  std::cerr << error.what() << std::endl;
  return 1;
}}
"""


def built(build, text):
    """Builds the program, and returns its path."""
    path = build / "tests/recipes.cpp"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    process = subprocess.run(["cmake", "--build", build, "--target", "recipes"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.returncode != 0 or "warning:" in process.stdout:
        sys.exit(process.stdout)
    return build / "tests/recipes"


def printed_by(command, folder, **environment):
    folder.mkdir()
    process = subprocess.run(command, cwd=folder, text=True, capture_output=True,
                             env=os.environ | {"OMP_NUM_THREADS": "1"} | environment)
    if process.returncode != 0:
        sys.exit(f"{command}: exit code {process.returncode}\n{process.stdout}{process.stderr}")
    return process.stdout


def launched(recipe, build, program, python):
    """Returns the page's command for this build, or None if the build lacks the program that runs it."""
    words = recipe.command.split()
    if words[0] == "torchrun":
        return [python, "-m", "torch.distributed.run", *words[1:-1], program, recipe.name] if os.path.exists(python) else None
    simgpu = build / "bin/sconce-simgpu"
    return [simgpu, "--hide-real-gpus", *words[1:-1], program, recipe.name] if simgpu.exists() else None


def outputs(found, build, work, python):
    """Returns the outputs of the programs by name: without a command and with the page's command."""
    program = built(build, source(found))
    names = [recipe.name for recipe in found] + re.findall(r'"(ten_lines_\w+)"', source(found))
    # All programs run in one process, because each process would load LibTorch.
    text = printed_by([program, *names], work / "alone", CUDA_VISIBLE_DEVICES="")
    alone = dict(re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", text, re.M | re.S))
    if alone.keys() != set(names):
        sys.exit(f"expected the output of {names}, got that of {[*alone]}")
    made = {}
    for recipe in found:
        made[recipe.name] = [alone[recipe.name]]
        command = recipe.command and launched(recipe, build, program, python)
        if command:
            made[recipe.name].append(printed_by(command, work / recipe.name))
    return made


def differences(found, made):
    """Yields a message for each block on the page that differs from its program's output."""
    for recipe in found:
        for number, got in enumerate(made[recipe.name]):
            shown = recipe.printed[number] if number < len(recipe.printed) else ""
            if VARYING.sub("#", shown) != VARYING.sub("#", got):
                yield f"docs/recipes.md: {recipe.name}: expected what the page shows:\n{shown}got:\n{got}"


def write(found, made):
    """Writes the outputs after their programs."""
    def with_outputs(match):
        recipe = next(recipe for recipe in found if recipe.code == match["code"])
        more, printed = BLOCK.sub(lambda block: block[0] if block["kind"] else "", match["more"]), made[recipe.name]
        more = re.sub(r"\n{3,}", "\n\n", more)
        if len(printed) > 1:
            end = BLOCK.search(more).end()
            more = f"{more[:end]}\n```\n{printed[1]}```\n{more[end:]}"
        begin = match[0][:match.start("more") - match.start()]
        return f"{begin}\n```\n{printed[0]}```\n{more}"

    PAGE.write_text(RECIPE.sub(with_outputs, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    python = os.environ.get("SCONCE_PYTHON", "")  # the torchrun of this Python, if it exists
    found = recipes(PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as work:
        made = outputs(found, build, pathlib.Path(work), python)
    if "--write" in sys.argv[2:]:
        write(found, made)
    else:
        sys.exit("\n".join(differences(found, made)) or 0)


if __name__ == "__main__":
    main()
